-- The tenants of a keyspace, fields of its topics. KEYS: topics. ARGV: verb, name, definition as JSON.
--   create  returns {'OK'}, {'EXISTS'}, or {'TOPIC'} where a topic has the name: their folders would be one
--   delete  returns {'OK'}
--   mark    of the tenant's own topics: that they are a tenant's. Returns {'OK'}

local topics, verb, name = KEYS[1], ARGV[1], ARGV[2]
local field = '#tenant:' .. name
if verb == 'mark' then
  redis.call('HSETNX', topics, '#tenant', ARGV[3])
  return { 'OK' }
elseif verb == 'delete' then
  redis.call('HDEL', topics, field)
  return { 'OK' }
end
if redis.call('HEXISTS', topics, name) == 1 then
  return { 'TOPIC' }
end
return { redis.call('HSETNX', topics, field, ARGV[3]) == 1 and 'OK' or 'EXISTS' }

-- Puts back the definition of a topic that Redis has lost. KEYS: topics. ARGV: name, topic_id,
-- definition as JSON, keyspace_id, the keyspace's defaults as JSON or '', generation, config version
-- that the table says, '1' where it is one topic more (not one that was there before).
-- Returns {'OK'} when it is there, {'EXISTS'} when another topic has the name, {'IN_USE', names…} when
-- the keyspace is another one with topics of its own, {'TENANT'} when a tenant has the name,
-- {'QUOTA', topics there are, limit}.
--
-- The config version becomes larger than the table's, so that the next change reaches the table.

local topics = KEYS[1]
local current = redis.call('HGET', topics, ARGV[1])
if current then
  return { cjson.decode(current).topic_id == ARGV[2] and 'OK' or 'EXISTS' }
end
if redis.call('HEXISTS', topics, '#tenant:' .. ARGV[1]) == 1 then
  return { 'TENANT' } -- see registry.lua
end
local keyspace_id = redis.call('HGET', topics, '#keyspace_id')
if keyspace_id and keyspace_id ~= ARGV[4] then
  local used = { 'IN_USE' }
  for _, name in ipairs(redis.call('HKEYS', topics)) do
    if string.sub(name, 1, 1) ~= '#' then
      used[#used + 1] = name
    end
  end
  if used[2] then
    return used
  end
end
if ARGV[8] == '1' then
  local used, limit = beyond_quota(topics, redis.call('HGET', topics, '#defaults'))
  if used then
    return { 'QUOTA', used, limit }
  end
end
local created = tonumber(redis.call('HGET', topics, '#created_us') or '0')
assert(created and created < 2 ^ 53, '#created_us is no time') -- before the first write
local defaults = redis.call('HGET', topics, '#defaults')
local under = cjson.decode(defaults or ARGV[5] ~= '' and ARGV[5] or '{}').version or 0
note_change(topics, '#changes')
if not defaults and ARGV[5] ~= '' then
  redis.call('HSET', topics, '#defaults', ARGV[5])
end
local own = string.format('%.0f', math.max(1, tonumber(ARGV[7]) + 1 - under))
local definition = string.gsub(ARGV[3], '"config_version": %d+', '"config_version": ' .. own, 1)
redis.call('HSET', topics, '#keyspace_id', ARGV[4], ARGV[1], definition,
  '#created_us', string.format('%.0f', math.max(created, tonumber(ARGV[6]))))
return { 'OK' }

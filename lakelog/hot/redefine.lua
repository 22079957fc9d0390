-- Puts a deleted topic's definition back. KEYS: topics. ARGV: name, topic_id, its config version then.
-- Returns {'OK'} when it is there, {'EXISTS'} when another topic has the name, {'PURGED'} when it is
-- being removed for good, {'TENANT'} when a tenant has the name, {'MISSING'} when nothing is kept of it,
-- {'QUOTA', topics there are, limit}.

local topics = KEYS[1]
local current = redis.call('HGET', topics, ARGV[1])
if current then
  return { cjson.decode(current).topic_id == ARGV[2] and 'OK' or 'EXISTS' } -- it is back already
end
if redis.call('HEXISTS', topics, '#tenant:' .. ARGV[1]) == 1 then
  return { 'TENANT' } -- see registry.lua
end
local kept = redis.call('HGET', topics, '#deleted:' .. ARGV[2])
if not kept then
  return { 'MISSING' }
end
if redis.call('HEXISTS', topics, '#purged_ms:' .. ARGV[2]) == 1 then
  return { 'PURGED' }
end
local used, limit = beyond_quota(topics, redis.call('HGET', topics, '#defaults'))
if used then
  return { 'QUOTA', used, limit }
end
local definition = string.gsub(kept, '"config_version": %d+', '"config_version": ' .. ARGV[3], 1)
note_change(topics, '#changes') -- first: it refuses what is no number
redis.call('HSET', topics, ARGV[1], definition)
redis.call('HDEL', topics, '#deleted:' .. ARGV[2], '#deleted_ms:' .. ARGV[2],
  '#deleted_into:' .. ARGV[2])
return { 'OK' }

-- Compare-and-set of one topic's definition. KEYS: topics. ARGV: name, version to replace (0: the
-- topic must not be there), definition as JSON, topic_id, version of the keyspace's defaults the
-- definition was checked against ('': it says nothing new), an id for the keyspace if it has none.
-- Returns {'OK', created_us, keyspace_id} or {'EXISTS'} | {'MISSING'} | {'CHANGED'} | {'DEFAULTS_CHANGED'},
-- {'TENANT'} or {'QUOTA', topics there are, limit}.
--
-- created_us orders creations under one name (see `generation` in common.lua). It comes from the
-- server's clock, is never below that of the creation before, and fits a double.

local topics = KEYS[1]
local name, version = ARGV[1], tonumber(ARGV[2])
local current = redis.call('HGET', topics, name)
if version == 0 then
  if current then
    return { 'EXISTS' }
  end
  if redis.call('HEXISTS', topics, '#tenant:' .. name) == 1 then
    return { 'TENANT' } -- whose folder the topic's table would lie in
  end
else
  local definition = current and cjson.decode(current)
  if not definition or definition.topic_id ~= ARGV[4] then
    return { 'MISSING' }
  end
  if definition.config_version ~= version then
    return { 'CHANGED' }
  end
end
local defaults = redis.call('HGET', topics, '#defaults')
if version == 0 then
  local used, limit = beyond_quota(topics, defaults)
  if used then
    return { 'QUOTA', used, limit }
  end
end
local created_us = time_after(topics, '#created_us') -- before the first write: it may fail
if ARGV[5] ~= '' then
  if (defaults and cjson.decode(defaults).version or 0) ~= tonumber(ARGV[5]) then
    return { 'DEFAULTS_CHANGED' }
  end
  note_change(topics, '#changes')
end
redis.call('HSETNX', topics, '#keyspace_id', ARGV[6])
if version > 0 then
  redis.call('HSET', topics, name, ARGV[3])
  return { 'OK' }
end
local text = string.gsub(ARGV[3], '"@created_us@"', created_us)
redis.call('HSET', topics, '#created_us', created_us, name, text)
return { 'OK', created_us, redis.call('HGET', topics, '#keyspace_id') }

-- Notes that a deleted topic is removed for good, or that it was. KEYS: topics. ARGV: topic_id,
-- 'begin' | 'end', now_ms or ''.
-- Returns since when it is removed, in ms; 0 when it is not among the deleted ones.

local topics, purged = KEYS[1], '#purged_ms:' .. ARGV[1]
if redis.call('HEXISTS', topics, '#deleted:' .. ARGV[1]) == 0 then
  return '0'
end
if ARGV[2] == 'end' then
  redis.call('HDEL', topics, '#deleted:' .. ARGV[1], '#deleted_ms:' .. ARGV[1],
    '#deleted_into:' .. ARGV[1], purged)
  return '0'
end
local now = redis.call('TIME')
local purged_ms = ARGV[3]
if purged_ms == '' then
  purged_ms = string.format('%.0f', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
end
redis.call('HSETNX', topics, purged, purged_ms)
return redis.call('HGET', topics, purged)

-- Takes a topic's definition out and keeps it aside, if it is still that creation's. KEYS: topics.
-- ARGV: name, topic_id, now_ms or '', the table that it is archived into or ''. Returns when that was, in ms; 0 when it was not there.
-- Apart from registry.lua because it must work when Redis is full: what comes of it makes room.

local topics = KEYS[1]
local current = redis.call('HGET', topics, ARGV[1])
if not current or cjson.decode(current).topic_id ~= ARGV[2] then
  return '0'
end
local now = redis.call('TIME')
local deleted_ms = ARGV[3]
if deleted_ms == '' then
  deleted_ms = string.format('%.0f', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
end
redis.call('HDEL', topics, ARGV[1]) -- first: a full Redis takes what follows a removal
redis.call('HSET', topics, '#deleted:' .. ARGV[2], current, '#deleted_ms:' .. ARGV[2], deleted_ms,
  '#deleting:' .. ARGV[1], ARGV[2])
if ARGV[4] ~= '' then
  redis.call('HSET', topics, '#deleted_into:' .. ARGV[2], ARGV[4])
end
note_change(topics, '#deletions')
return deleted_ms

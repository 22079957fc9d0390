-- Removes a topic's definition if it is still that creation's. KEYS: topics. ARGV: name, topic_id.
-- Apart from registry.lua because it must work when Redis is full: it makes room.

local current = redis.call('HGET', KEYS[1], ARGV[1])
if not current or cjson.decode(current).topic_id ~= ARGV[2] then
  return 0
end
return redis.call('HDEL', KEYS[1], ARGV[1])

-- Compare-and-set of the keyspace's defaults. KEYS: topics. ARGV: the last change that was seen,
-- defaults as JSON.
-- Returns {'OK'} or {'CHANGED'}.
--
-- That is also of every topic, because the defaults were checked against all topics: a new
-- or changed one may contradict them.

local topics = KEYS[1]
if (redis.call('HGET', topics, '#changes') or '0') ~= ARGV[1] then
  return { 'CHANGED' }
end
note_change(topics, '#changes')
redis.call('HSET', topics, '#defaults', ARGV[2])
return { 'OK' }

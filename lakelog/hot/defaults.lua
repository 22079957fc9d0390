-- Compare-and-set of the keyspace's defaults. KEYS: topics. ARGV: count of changes that was seen,
-- defaults as JSON.
-- Returns {'OK'} or {'CHANGED'}.
--
-- The count also moves with every topic, because the defaults were checked against all topics: a new
-- or changed one may contradict them.

local topics = KEYS[1]
if (redis.call('HGET', topics, '#changes') or '0') ~= ARGV[1] then
  return { 'CHANGED' }
end
redis.call('HSET', topics, '#defaults', ARGV[2])
redis.call('HINCRBY', topics, '#changes', 1)
return { 'OK' }

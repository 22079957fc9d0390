-- Removes a partition if it still belongs to that creation of the topic. ARGV: topic_id.

if redis.call('HGET', state, 'topic_id') ~= ARGV[1] then
  return 0
end
return redis.call('UNLINK', stream, state, segments, times, producers, KEYS[6])

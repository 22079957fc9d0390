-- Takes a partition away if it still belongs to that creation of the topic. KEYS: those of the
-- partition, then as many to keep them under. ARGV: topic_id, for how many ms to keep them ('0': not at
-- all, '': until they are purged), the config version that was deleted: what came back since has a newer.
--
-- The state goes last, here and on the way back (init.lua): what a torn append-only file left half
-- done goes on from there.

local st = redis.call('HMGET', state, 'topic_id', 'config_version')
if st[1] ~= ARGV[1] or tonumber(st[2]) > tonumber(ARGV[3]) then
  return 0
end
if ARGV[2] == '0' then
  return redis.call('UNLINK', stream, state, segments, times, producers, KEYS[6], KEYS[7])
end
for _, i in ipairs({ 1, 3, 4, 5, 6, 7, 2 }) do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[i + 7])
    if ARGV[2] ~= '' then
      redis.call('PEXPIRE', KEYS[i + 7], ARGV[2])
    end
  end
end
return 1

-- The steps of a planned stop. ARGV: verb.
--
--   pause   refuse appends and mark the partition clean: all there is was written under this run id
--   unmark  take the mark away (and the partition over, if the server changed); appends still refused
--   resume  accept appends again
--
-- Between `unmark` and `resume` the caller makes sure that `unmark` is on disk. Otherwise a crash
-- could bring the mark back after records were appended, and their offsets would be used twice.

local st = redis.call('HMGET', state, 'topic_id', 'run_id', 'clean', 'paused')
local verb = ARGV[1]
if not st[1] then
  return { 'UNKNOWN_TOPIC_OR_PARTITION' }
end
if verb == 'pause' then
  if st[2] ~= RUN_ID then
    return { 'RECOVERY_NEEDED' }
  end
  redis.call('HSET', state, 'paused', '1', 'clean', '1')
elseif verb == 'unmark' then
  if st[2] ~= RUN_ID then
    if not st[3] then
      return { 'RECOVERY_NEEDED' }
    end
    redis.call('HSET', state, 'run_id', RUN_ID, 'adopted_from', st[2])
  end
  if st[3] then
    redis.call('HSET', state, 'paused', '1')
    redis.call('HDEL', state, 'clean')
  end
elseif verb == 'resume' then
  if st[2] ~= RUN_ID or st[3] then
    return { 'RECOVERY_NEEDED' }
  end
  redis.call('HDEL', state, 'paused')
end
return { 'OK' }

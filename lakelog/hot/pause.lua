-- The steps of a planned stop. ARGV: verb.
--
--   pause   refuse appends and mark the partition clean: all there is was written under this run id
--   unmark  remove the mark, and take the partition over if the server changed; no appends yet
--   resume  accept appends again
--
-- Between `unmark` and `resume` the caller makes sure that `unmark` is on disk. Otherwise a crash
-- could bring the mark back after records were appended, and their offsets would be used twice.
-- A caller that dies in between leaves the partition partly adopted: paused without a mark. Append
-- and recover() then know that this must be done again.

local st = redis.call('HMGET', state, 'topic_id', 'run_id', 'clean', 'paused', 'log_end')
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
    -- A server that took over may hold the mark of a stop after which its predecessor went on.
    if not st[3] or TOOK_OVER then
      return { 'RECOVERY_NEEDED' }
    end
    redis.call('HSET', state, 'run_id', RUN_ID, 'adopted_from', st[2])
    -- Half of an older lakelog's append that was refused meanwhile may end the file, and close the stream
    -- at the start after the next: see recover.lua.
    open_stream(tonumber(st[5]))
  end
  if st[3] or st[4] then
    redis.call('HDEL', state, 'clean')
    -- Always a write: it brings an earlier caller's unmark to the disk.
    redis.call('HSET', state, 'paused', st[4] or '1')
  end
elseif verb == 'resume' then
  if st[2] ~= RUN_ID or st[3] then
    return { 'RECOVERY_NEEDED' }
  end
  redis.call('HDEL', state, 'paused')
end
return { 'OK' }

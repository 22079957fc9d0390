-- Begins a new segment where retention deleted the open one of a tiered partition, as Kafka does
-- before it deletes its active segment: later records must not get the age of deleted ones.
-- ARGV: topic_id, the log end below which all was deleted, now_ms or ''. Changes nothing when
-- something was appended since, or is still there. Returns 1 if it rolled, else 0.

local st = redis.call('HMGET', state, 'topic_id', 'log_end', 'local_log_start', 'segment',
  'closed_bytes')
if st[1] ~= ARGV[1] or tonumber(st[2]) ~= tonumber(ARGV[2])
  or tonumber(st[3]) ~= tonumber(st[2]) then
  return 0
end
local open = parse_segment(st[4])
if open.bytes == 0 then
  return 0
end
redis.call('HSET', state, 'segment',
  format_segment(new_segment(tonumber(st[2]), server_time(ARGV[3]))))
return 1

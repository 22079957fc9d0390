-- Where to scan from for the first record at or after a timestamp.
-- ARGV: timestamp_ms, topic_id or ''.
-- Returns {'OK', offset, largest entry in bytes}, {'NONE'} or {'UNKNOWN_TOPIC_ID', found or ''}.
--
-- The answer is in the first segment whose largest timestamp reaches the target, or after it if
-- that record lies below the local log start. The index holds the largest timestamp *so far*:
-- everything up to the last index entry below the target is below it too.

local target = tonumber(ARGV[1])
local st = redis.call('HMGET', state, 'topic_id', 'local_log_start', 'segment', 'largest_entry')
if not st[1] or ARGV[2] ~= '' and st[1] ~= ARGV[2] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
local from
for _, text in ipairs(redis.call('ZRANGE', segments, 0, -1)) do
  local s = parse_closed(text)
  if s.max >= target then
    from = s.base
    break
  end
end
if not from then
  local open = parse_segment(st[3])
  if open.max < target then
    return { 'NONE' }
  end
  from = open.base
end
local floor = redis.call('ZREVRANGEBYSCORE', times, '(' .. int(target), '-inf', 'LIMIT', 0, 1)[1]
if floor then
  from = math.max(from, tonumber(floor) + 1)
end
return { 'OK', math.max(from, tonumber(st[2])), tonumber(st[4] or 0) }

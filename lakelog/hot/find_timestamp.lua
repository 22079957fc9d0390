-- Where to scan from for the first record at or after a timestamp.
-- ARGV: timestamp_ms, topic_id or '', the base after which looking through the segments goes on or '',
-- how many it looks at.
-- Returns {'OK', offset, largest entry in bytes}, {'NONE'}, {'UNKNOWN_TOPIC_ID', found or ''} or
-- {'MORE', where to go on}: all others who use the server get their turn before the next part.
--
-- The answer is in the first segment whose largest timestamp reaches the target, or after it if
-- that record lies below the local log start. The index holds the largest timestamp *so far*:
-- everything up to the last index entry below the target is below it too, so the segments before
-- that entry's are passed over. Mostly its own or the next one is the answer; others are looked at
-- where the record that reached the target first was trimmed.

local target = tonumber(ARGV[1])
local st = redis.call('HMGET', state, 'topic_id', 'local_log_start', 'segment', 'largest_entry')
if not st[1] or ARGV[2] ~= '' and st[1] ~= ARGV[2] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
local least = tonumber(st[2])
local floor = redis.call('ZREVRANGEBYSCORE', times, '(' .. int(target), '-inf', 'LIMIT', 0, 1)[1]
if floor then
  least = math.max(least, tonumber(floor) + 1)
end
local from
local at, left, several = ARGV[3] == '' and least or '(' .. ARGV[3], tonumber(ARGV[4]), 8
while not from do
  local page = closed_from(at, math.min(several, left))
  for _, text in ipairs(page) do
    local s = parse_closed(text)
    if s.max >= target and s.ending > least then
      from = s.base
      break
    end
    at = '(' .. int(s.base)
  end
  if not from and #page < math.min(several, left) then
    break
  end
  left, several = left - #page, several * 4
  if not from and left <= 0 then
    return { 'MORE', string.sub(at, 2) }
  end
end
if not from then
  local open = parse_segment(st[3])
  if open.max < target then
    return { 'NONE' }
  end
  from = open.base
end
return { 'OK', math.max(from, least), tonumber(st[4] or 0) }

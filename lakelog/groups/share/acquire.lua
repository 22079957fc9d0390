-- A member takes records: the first that nobody holds, in order of offsets.
--
-- ARGV: now_ms or '', group, topic_id, member, how many offsets at most, for how long in ms, how often a
-- record may be delivered, with how many ranges nothing new is taken, '1' if the group has a dead-letter
-- topic or '', where the group begins in this partition if it has no state there or ''.
-- Returns
--   {'OK', end, log end, ms until a lock ends or '', '1' if there are too many ranges or '', epoch, how
--          many ranges are delivered, then of each its start, end and delivery count; then, likewise, the
--          ranges that are to be written to the dead-letter topic}
--   {'NEW'}               it has no state there: list it, then call again with where it begins
--   {'UNKNOWN_TOPIC_ID'}

local member, left, lock_ms, most = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local max_ranges, has_dead_letters = tonumber(ARGV[8]), ARGV[9] == '1'

local log_start, log_end = log_of_topic()
if not log_end then
  return { 'UNKNOWN_TOPIC_ID' }
end
if not load() then
  if ARGV[10] == '' then
    return { 'NEW' }
  end
  share = { epoch = 0, end_offset = math.min(tonumber(ARGV[10]), log_end), ranges = {} }
end
expire(most, has_dead_letters, log_start)
if share.end_offset < log_start then
  put(share.ranges, share.end_offset, log_start, OVER)
  share.end_offset = log_start
end

local is_full = #share.ranges >= max_ranges
local epoch, deadline = share.epoch + 1, now + lock_ms
local dead_left = left
local ranges, given, dead = {}, {}, {}

-- Locks as much as may be of [start, last); returns the end of that.
local function take(start, last, as_state, count, most_offsets, list)
  local until_ = math.min(last, start + most_offsets)
  put(ranges, start, until_,
    { state = as_state, count = count, owner = member, deadline = deadline, epoch = epoch })
  list[#list + 1] = { start, until_, count }
  return until_
end

for _, r in ipairs(share.ranges) do
  local at = r.start
  if r.state == AVAILABLE and left > 0 then
    at = take(r.start, r.last, ACQUIRED, r.count + 1, left, given)
    left = left - (at - r.start)
  elseif r.state == ARCHIVING and r.owner == '' and dead_left > 0 then
    at = take(r.start, r.last, ARCHIVING, r.count, dead_left, dead)
    dead_left = dead_left - (at - r.start)
  end
  put(ranges, at, r.last, r)
end
if left > 0 and not is_full and share.end_offset < log_end then
  share.end_offset = take(share.end_offset, log_end, ACQUIRED, 1, left, given)
end
share.ranges = ranges
if given[1] or dead[1] then
  share.epoch = epoch
end
advance()
store()

local due
for _, r in ipairs(share.ranges) do
  if r.owner ~= '' and (not due or r.deadline < due) then
    due = r.deadline
  end
end
local reply = { 'OK', int(share.end_offset), int(log_end), due and int(math.max(1, due - now)) or '',
  is_full and '1' or '', int(epoch), int(#given) }
for _, list in ipairs({ given, dead }) do
  for _, range in ipairs(list) do
    for _, number in ipairs(range) do
      reply[#reply + 1] = int(number)
    end
  end
end
return reply

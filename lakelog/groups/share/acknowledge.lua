-- A member says what became of records that it holds.
--
-- ARGV: now_ms or '', group, topic_id, member, how often a record may be delivered, '1' if the group has
-- a dead-letter topic or '', lock in ms, with how many ranges nothing is taken that makes more of them;
-- then ranges that lie one behind the other, of each its start, end, epoch or -1 for any, and what became
-- of it:
--   accept    done with
--   release   to be delivered again, if it may be
--   reject    never to be delivered again
--   renew     held for longer
--   unread    to be delivered again, as if it never had been: the member handed none of it out
--   dead      written to the dead-letter topic
--   gap       there are no records: whoever may hold what of it, nobody needs it
-- Returns {'OK', 'OK' or 'INVALID_RECORD_STATE' for each}: a range is taken as a whole or not at all.
-- {'TOO_MANY_RANGES'}: nothing was done. {'UNKNOWN_TOPIC_ID'}

local member, most, has_dead_letters = ARGV[4], tonumber(ARGV[5]), ARGV[6] == '1'
local deadline, max_ranges = now + tonumber(ARGV[7]), tonumber(ARGV[8])

local log_start, log_end = log_of_topic()
if not log_end then
  return { 'UNKNOWN_TOPIC_ID' }
end
local reply = { 'OK' }
if not load() then
  for _ = 9, #ARGV, 4 do
    reply[#reply + 1] = 'INVALID_RECORD_STATE'
  end
  return reply
end
local count_before = #share.ranges
expire(most, has_dead_letters, log_start)

local became = {
  accept = function()
    return DONE
  end,
  release = function(r)
    return given_back(r.count, most, has_dead_letters)
  end,
  reject = function(r)
    return undelivered(r.count, has_dead_letters)
  end,
  renew = function(r)
    return { state = r.state, count = r.count, owner = r.owner, deadline = deadline, epoch = r.epoch }
  end,
  unread = function(r)
    if r.state == ARCHIVING then
      return free(ARCHIVING, r.count)
    end
    return free(AVAILABLE, r.count - 1)
  end,
  dead = function()
    return OVER
  end,
  gap = function(r)
    if r.state == AVAILABLE or r.owner == member then
      return DONE
    end
    return r
  end,
}

local old, ranges = share.ranges, {}
local i = 1 -- the range that is copied next
local at = old[1] and old[1].start or share.end_offset -- from here on

-- Copies everything below an offset, as what `as` makes of it.
local function copy(last, as)
  while old[i] and at < last do
    local r = old[i]
    local until_ = math.min(r.last, last)
    put(ranges, at, until_, as and as(r) or r)
    at = until_
    if at == r.last then
      i = i + 1
    end
  end
end

local function is_held(last, epoch, what)
  local covered, j = at, i
  while covered < last do
    local r = old[j]
    if not r or r.owner ~= member or epoch ~= -1 and r.epoch ~= epoch then
      return false
    end
    local is_dead = r.state == ARCHIVING
    if is_dead ~= (what == 'dead') and what ~= 'unread' then
      return false
    end
    covered, j = r.last, j + 1
  end
  return true
end

for argument = 9, #ARGV, 4 do
  local start, last = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
  local epoch, what = tonumber(ARGV[argument + 2]), ARGV[argument + 3]
  assert(became[what] and start < last, 'not an acknowledgement')
  copy(start)
  if what == 'gap' then
    copy(last, became.gap)
    if start <= share.end_offset and last > share.end_offset then
      local end_offset = math.min(last, log_end)
      put(ranges, share.end_offset, end_offset, DONE)
      share.end_offset = math.max(share.end_offset, end_offset)
      at = share.end_offset
    end
    reply[#reply + 1] = 'OK'
  elseif start == at and is_held(last, epoch, what) then
    copy(last, became[what])
    reply[#reply + 1] = 'OK'
  else
    reply[#reply + 1] = 'INVALID_RECORD_STATE'
  end
end
copy(share.end_offset)
share.ranges = ranges
advance()
if #share.ranges > max_ranges and #share.ranges > count_before then
  return { 'TOO_MANY_RANGES' }
end
store()
return reply

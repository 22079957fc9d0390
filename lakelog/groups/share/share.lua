-- What the scripts of one share-partition share: how far a share group has come in a partition. Loaded
-- in front of each of them, after hot/run.lua.
--
-- KEYS: shares. The partition's state (see hot/common.lua) lies beside it, in the same slot. It is only
-- read, and so not among KEYS: to name it there would take the right to write it.
-- ARGV[1]: now_ms, or '' for the server's clock. ARGV[2]: group id. ARGV[3]: topic id.
--
-- shares is a hash: group id → cmsgpack of
--   1            the version of this form
--   topic id     of the creation of the topic that the offsets are of
--   epoch        grows with each acquisition; tells one lock from the next of the same member
--   end          the first offset that was never handed out; what lies between the first range and it
--                is in a range
--   owners       the ids of the members that hold something
--   ranges       six numbers for each: start, state, delivery count, owner (its place in owners, 0:
--                none), deadline in ms, epoch. A range ends where the next one starts
--
-- Ranges, never records: what a member holds is one range, however many records it is, and costs one
-- step when its time is over. Nothing runs by itself: locks end in the next call that looks, `expire`.
--
-- Each call reads and writes the whole, all at once. A refused call writes nothing.

local shares = KEYS[1]
local state = string.gsub(shares, ':shares$', ':state')
local group, topic_id = ARGV[2], ARGV[3]

local AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED, ARCHIVING = 1, 2, 3, 4, 5
-- ARCHIVING: it waits for somebody to write it to the dead-letter topic, or a member is about to.

local function int(number)
  return string.format('%d', number)
end

local now
if ARGV[1] ~= '' then
  now = tonumber(ARGV[1])
else
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local share -- { epoch, end_offset, ranges }

-- Where the log starts and ends, as far as the hot tier knows; nothing if the partition does not belong
-- to that creation of the topic.
local function log_of_topic()
  local found = redis.call('HMGET', state, 'topic_id', 'log_start', 'log_end')
  if found[1] ~= topic_id then
    return nil
  end
  local log_start, log_end = tonumber(found[2]), tonumber(found[3])
  assert(log_start and log_end, 'the log is not lakelog\'s')
  return log_start, log_end
end

-- Reads it into `share`; false if there is none of this creation of the topic.
local function load()
  local packed = redis.call('HGET', shares, group)
  if not packed then
    return false
  end
  local v = cmsgpack.unpack(packed)
  assert(type(v) == 'table' and v[1] == 1 and type(v[2]) == 'string' and type(v[3]) == 'number'
    and type(v[4]) == 'number' and type(v[5]) == 'table' and type(v[6]) == 'table'
    and #v[6] % 6 == 0, 'the share group is not lakelog\'s')
  if v[2] ~= topic_id then
    return false
  end
  local flat, owners, ranges = v[6], v[5], {}
  for i = 1, #flat, 6 do
    local last = flat[i + 6] or v[4]
    assert(type(flat[i]) == 'number' and flat[i] < last, 'the share group is not lakelog\'s')
    ranges[#ranges + 1] = {
      start = flat[i], last = last, state = flat[i + 1], count = flat[i + 2],
      owner = owners[flat[i + 3]] or '', deadline = flat[i + 4], epoch = flat[i + 5],
    }
  end
  share = { epoch = v[3], end_offset = v[4], ranges = ranges }
  return true
end

local function store()
  local flat, owners, places = {}, {}, {}
  for _, r in ipairs(share.ranges) do
    local place = 0
    if r.owner ~= '' then
      place = places[r.owner]
      if not place then
        owners[#owners + 1] = r.owner
        place = #owners
        places[r.owner] = place
      end
    end
    local n = #flat
    flat[n + 1], flat[n + 2], flat[n + 3], flat[n + 4], flat[n + 5], flat[n + 6] =
      r.start, r.state, r.count, place, r.deadline, r.epoch
  end
  redis.call('HSET', shares, group,
    cmsgpack.pack({ 1, topic_id, share.epoch, share.end_offset, owners, flat }))
end

-- Adds a range behind the others, as part of the last one if both are alike.
local function put(ranges, start, last, as)
  if start >= last then
    return
  end
  local before = ranges[#ranges]
  if before and before.state == as.state and before.count == as.count and before.owner == as.owner
    and before.deadline == as.deadline and before.epoch == as.epoch then
    before.last = last
  else
    ranges[#ranges + 1] = {
      start = start, last = last, state = as.state, count = as.count, owner = as.owner,
      deadline = as.deadline, epoch = as.epoch,
    }
  end
end

local function free(state_, count)
  return { state = state_, count = count, owner = '', deadline = 0, epoch = 0 }
end

local DONE, OVER = free(ACKNOWLEDGED, 0), free(ARCHIVED, 0)

-- What becomes of records that nobody will get any more.
local function undelivered(count, has_dead_letters)
  return has_dead_letters and free(ARCHIVING, count) or OVER
end

-- What becomes of records whose delivery failed.
local function given_back(count, most, has_dead_letters)
  if count >= most then
    return undelivered(count, has_dead_letters)
  end
  return free(AVAILABLE, count)
end

-- Ends the locks whose time is over, and forgets what was deleted since, unless somebody holds it.
local function expire(most, has_dead_letters, log_start)
  local ranges = {}
  for _, r in ipairs(share.ranges) do
    local as = r
    if r.owner ~= '' and r.deadline <= now then
      as = r.state == ACQUIRED and given_back(r.count, most, has_dead_letters)
        or undelivered(r.count, has_dead_letters)
    elseif r.state == AVAILABLE and r.count >= most then -- the limit was lowered
      as = undelivered(r.count, has_dead_letters)
    elseif r.state == ARCHIVING and not has_dead_letters and r.owner == '' then
      as = OVER -- the group names no topic for them any more
    end
    local at = r.start
    if as.owner == '' and as.state ~= ACKNOWLEDGED and at < log_start then
      at = math.min(r.last, log_start)
      put(ranges, r.start, at, OVER)
    end
    put(ranges, at, r.last, as)
  end
  share.ranges = ranges
end

-- Forgets what is done with at the beginning: the share-partition start offset moves up.
local function advance()
  local first = 1
  while share.ranges[first] and (share.ranges[first].state == ACKNOWLEDGED
      or share.ranges[first].state == ARCHIVED) do
    first = first + 1
  end
  if first > 1 then
    local ranges = {}
    for i = first, #share.ranges do
      ranges[#ranges + 1] = share.ranges[i]
    end
    share.ranges = ranges
  end
end

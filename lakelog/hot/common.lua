-- What the scripts of one topic-partition share. Loaded in front of each of them, after run.lua.
--
-- KEYS: stream, state, segments, times, producers.
--
-- `:state` is a hash:
--   topic_id          of the creation of the topic this partition belongs to
--   generation        grows with each creation under the same name; a stale creator loses
--   config_version    of the settings below
--   settings          16 numbers, or 17 where a quota bounds appends; see parse_settings
--   run_id            the server's run when the partition was last written; '': it was lost and
--                     made again, so it is not known which offsets had been given out
--   clean             there: the server was stopped on purpose, and nothing was appended since
--   paused            there: no appends, a stop is coming
--   adopted_from      the run id a clean stop was taken over from
--   log_end           offset of the next record
--   log_start         untiered topics and delete-records: the first readable offset
--   local_log_start   the first offset the hot tier holds
--   segment           the open segment, see parse_segment
--   index             bytes since the last time-index entry, its timestamp, the largest so far
--   closed_bytes      stored bytes of the closed segments
--   appended          records and stored bytes that were ever appended here, for whoever counts;
--                     absent: none, or an older lakelog did. It begins again where Redis was lost
--   largest_entry     bytes of the largest entry ever; bounds what a read may ask for at once
--   producer_count    fields of `:producers`; if the number differs, some were deleted
--   checksums         there: a producer with checksums was there, so that archivers ask for its calls
--   unarchived_since  all records appended before this time are archived
--   retention_checked when retention by time was last checked, see check_due
--   gaps              start-end, comma separated: offsets skipped after an unclean stop
--   quarantined       likewise: gaps that have no entry, since one was skipped. A separate field,
--                     so that setting one keeps what half a transaction wrote into the other
--   forgotten         the run in which the partition was made again without its producers: a call that
--                     was sent first in that run may have been appended before
--   lost_from         then: where it went on, so that the gap there is of all that was not archived
--   archived_into     of the first partition: JSON of the table that the topic is archived into
--   allowance         under quotas: how many bytes may be held here, the version of that, and how
--                     many may be appended; more is asked for in quota.lua
--   appending         an older lakelog may have left it; nothing goes by it
--   reserved_end      appends stop here until the cold tier has reserved more offsets; absent:
--                     no cold tier, or an older lakelog made the partition. See reservation.py
--
-- `:segments` holds the closed segments, scored by base:
-- `base end bytes first max created modified`.
-- Numbers are formatted with %d, never with `..`, which turns to exponents at 10^14.

local stream, state, segments, times, producers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local INT32_MAX = 2147483647
local GAP_SPAN = 16777216 -- 2^24
local APPENDS_PER_MS = 16384 -- more records than one partition can take: 16 M a second
local YEAR_MS = 31622400000
local CHECK_INTERVAL_MS = 300000 -- the default of log.retention.check.interval.ms

local function int(number)
  return string.format('%d', number)
end

-- The settings, in the order in which hot/registry.py writes them. The last ones are missing if an
-- older lakelog wrote them, or if they say nothing.
local SETTINGS = '^' .. string.rep('(%S+) ', 13) .. '(%S+) ?(%S*) ?(%S*) ?(%S*)$'

-- Parsing refuses foreign values by an error, before the first write, since writes are not rolled
-- back. Keys of another type are refused too, by reading each.

local function check_types()
  redis.call('XLEN', stream)
  redis.call('ZCARD', segments)
  redis.call('ZCARD', times)
  redis.call('HLEN', producers)
end

local function parse_settings(text)
  -- Faster than gmatch.
  local a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, q, r = string.match(text, SETTINGS)
  assert(tonumber(a) and tonumber(b) and tonumber(c) and tonumber(d) and tonumber(f)
    and tonumber(g) and tonumber(h) and tonumber(k) and tonumber(l) and tonumber(m)
    and tonumber(n), 'the settings are not lakelog\'s')
  return {
    segment_bytes = tonumber(a), segment_ms = tonumber(b), max_jitter_ms = tonumber(c),
    max_message_bytes = tonumber(d), log_append_time = e == '1', before_max_ms = tonumber(f),
    after_max_ms = tonumber(g), index_interval_bytes = tonumber(h), keys_required = i == '1',
    tiered = j == '1', retention_ms = tonumber(k), retention_bytes = tonumber(l),
    retention_entries = tonumber(m), producer_expiration_ms = tonumber(n),
    max_decoded_bytes = tonumber(o) or math.huge,
    check_interval_ms = tonumber(q) or CHECK_INTERVAL_MS,
    is_hot_limited = r == '1' or r == '3', is_rate_limited = r == '2' or r == '3',
  }
end

-- The open segment: base, bytes, first and largest timestamp, creation, last change.
local function parse_segment(text)
  local base, bytes, first, max, created, modified =
    string.match(text, '(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)')
  local s = {
    base = tonumber(base), bytes = tonumber(bytes), first = tonumber(first),
    max = tonumber(max), created = tonumber(created), modified = tonumber(modified),
  }
  assert(s.base and s.bytes and s.first and s.max and s.created and s.modified,
    'the open segment is not lakelog\'s')
  return s
end

local function format_segment(s)
  return string.format('%d %d %d %d %d %d', s.base, s.bytes, s.first, s.max, s.created, s.modified)
end

local function new_segment(base, now)
  return { base = base, bytes = 0, first = -1, max = -1, created = now, modified = now }
end

-- A closed segment, as stored in `:segments`.
local function parse_closed(text)
  local base, ending, bytes, first, max, created, modified =
    string.match(text, '(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)')
  local s = {
    base = tonumber(base), ending = tonumber(ending), bytes = tonumber(bytes),
    first = tonumber(first), max = tonumber(max), created = tonumber(created),
    modified = tonumber(modified), text = text,
  }
  assert(s.base and s.ending and s.bytes and s.first and s.max and s.created and s.modified,
    'a closed segment is not lakelog\'s')
  return s
end

-- Closed segments as stored: from the one that holds an offset on, or from the first above a base (as
-- `(base`); those that begin below `before`, at most so many.
local function closed_from(offset, before, most)
  local from = offset
  if string.sub(offset, 1, 1) ~= '(' then
    from = redis.call('ZRANGE', segments, offset, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1,
      'WITHSCORES')[2] or '-inf'
  end
  return redis.call('ZRANGE', segments, from, before, 'BYSCORE', 'LIMIT', 0, most)
end

-- The stored bytes that a partition holds; of a segment that is trimmed in part, its share of offsets.
local function held_bytes(closed_bytes, open, local_log_start, log_end)
  local function gone(s, ending)
    if local_log_start <= s.base or ending <= s.base then
      return 0
    end
    return s.bytes * (math.min(local_log_start, ending) - s.base) / (ending - s.base)
  end
  local held = closed_bytes + open.bytes - gone(open, log_end)
  if closed_bytes > 0 then
    local oldest = redis.call('ZRANGE', segments, 0, 0)[1]
    if oldest then
      local s = parse_closed(oldest)
      held = held - gone(s, s.ending)
    end
  end
  return math.max(0, math.ceil(held))
end

-- What a partition may hold, the version of that, and what may be appended to it.
local function parse_allowance(text)
  local held, version, appended = string.match(text or '0 0 0', '^(%d+) (%d+) (%d+)$')
  assert(held, 'the allowance is not lakelog\'s')
  return { held = tonumber(held), version = tonumber(version), appended = tonumber(appended) }
end

local function format_allowance(a)
  return string.format('%d %d %d', a.held, a.version, a.appended)
end

-- How much earlier than segment.ms this segment rolls: in [0, max_jitter_ms), made from topic id and
-- base offset, so that it is always the same.
local function jitter_ms(settings, topic_id, base)
  if settings.max_jitter_ms == 0 then
    return 0
  end
  local drawn = string.sub(redis.sha1hex(topic_id .. ':' .. int(base)), 1, 8)
  return tonumber(drawn, 16) % settings.max_jitter_ms
end

local function close_segment(s, ending)
  redis.call('ZADD', segments, int(s.base), string.format('%d %d %d %d %d %d %d',
    s.base, ending, s.bytes, s.first, s.max, s.created, s.modified))
end

local function server_time(given)
  if given ~= '' then
    return tonumber(given)
  end
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

-- Has the stream take entries from an offset on, unless it holds one there. An older lakelog
-- closed it for a moment within each large append, by an `XSETID` to the largest id, and may have left it
-- closed, or half of such an append in the append-only file.
local function open_stream(offset)
  if offset > 0 then
    redis.pcall('XSETID', stream, int(offset - 1) .. '-18446744073709551615')
  end
end

-- Adds an entry; the answer of XADD.
local function add_entry(log_end, id, ...)
  local added = redis.pcall('XADD', stream, id, ...)
  if added.err then
    open_stream(log_end)
    added = redis.pcall('XADD', stream, id, ...)
  end
  return added
end

-- Removes what half a transaction left beside the entries (see hot/declared.py): closed segments and
-- index entries in a gap, above the log end, or over the open segment. The entries stay, and readers
-- skip them. Returns one past the highest offset found above the log end, else 0.
local function drop_half_transaction(gaps, log_end, open_base)
  local function disowned(first, last)
    if last >= log_end then
      return true
    end
    for from, to in string.gmatch(gaps or '', '(%d+)-(%d+)') do
      if first < tonumber(to) and last >= tonumber(from) then
        return true
      end
    end
    return false
  end
  local dropped = {}
  -- It closed the segment that was open then: the last one that begins below the gap, or one in it.
  local function look(first, last)
    local below = redis.call('ZRANGE', segments, first, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1,
      'WITHSCORES')
    for _, text in ipairs(redis.call('ZRANGE', segments, below[2] or first, last, 'BYSCORE')) do
      local s = parse_closed(text)
      if s.base >= open_base or disowned(s.base, s.ending - 1) then
        dropped[#dropped + 1] = { segments, text }
      end
    end
  end
  look(int(math.min(open_base, log_end)), '+inf')
  for from, to in string.gmatch(gaps or '', '(%d+)-(%d+)') do
    look(from, '(' .. to)
  end
  for _, offset in ipairs(redis.call('ZREVRANGE', times, 0, 1023)) do -- more than one call leaves
    if disowned(tonumber(offset), tonumber(offset)) then
      dropped[#dropped + 1] = { times, offset }
    end
  end
  for _, member in ipairs(dropped) do
    redis.call('ZREM', member[1], member[2])
  end
  local top = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  if top then
    local last, count = string.match(top[1], '(%d+)-(%d+)')
    last, count = tonumber(last), tonumber(count)
    if count >= 1 and last - count + 1 >= log_end and last < 9007199254740992 then
      return last + 1
    end
  end
  return 0
end

-- Whether a producer's newest call has a checksum, or stands for one, or is a Kafka client's (see
-- producer_calls.py).
local function has_checksum(value)
  return string.find(value, '^%d+ %d+|%d+ %d+ %d+ %-?%d+ [%xk]') ~= nil
end

-- A producer's value without its newest calls whose records lie at or above an offset.
local function without_calls_from(value, offset)
  while true do
    local head, base, older = string.match(value, '^(%d+ %d+)|%d+ %d+ (%d+)[^|]*(.*)$')
    if not base or tonumber(base) < offset then
      return value
    end
    value = head .. older
  end
end

-- Gives the closed segments by number, the oldest first; false behind the last, nobody asks further.
-- Read two at first, as an append rarely looks beyond the second, then many at a time.
local function closed_by_age()
  local read, many = {}, 2
  return function(i)
    if read[i] == nil then
      local page = redis.call('ZRANGE', segments, #read, #read + many - 1)
      for _, text in ipairs(page) do
        read[#read + 1] = text
      end
      if #page < many then
        read[#read + 1] = false
      end
      many = 50
    end
    if type(read[i]) == 'string' then
      read[i] = parse_closed(read[i])
    end
    return read[i]
  end
end

-- Prepares to drop what lies wholly below `before`: entries, closed segments, time-index entries.
-- Returns the bytes of the segments to be dropped, and a function that drops all of it. The caller calls
-- it after raising the start in `:state`. If half of the transaction is lost, a start above offsets that
-- are still there does no harm; one below a hole does.
local function trimming(before)
  redis.call('XLEN', stream) -- a key of another type must be refused now
  local freed, dropped, closed = 0, 0, closed_by_age()
  while closed(dropped + 1) and closed(dropped + 1).ending <= before do
    freed = freed + closed(dropped + 1).bytes
    dropped = dropped + 1
  end
  -- Offsets grow with the scores, so a binary search finds the first index entry to keep.
  local low, high = 0, redis.call('ZCARD', times)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if tonumber(redis.call('ZRANGE', times, middle, middle)[1]) < before then
      low = middle + 1
    else
      high = middle
    end
  end
  return freed, function()
    redis.call('XTRIM', stream, 'MINID', int(before))
    if dropped > 0 then
      redis.call('ZREMRANGEBYRANK', segments, 0, dropped - 1)
    end
    if low > 0 then
      redis.call('ZREMRANGEBYRANK', times, 0, low - 1)
    end
  end
end

-- Whether retention by time is to be checked now, and what is then to be stored as
-- `retention_checked` (nil: nothing new). The first check comes an interval after the first append; so
-- it does after the clock was set back.
local function check_due(checked, settings, now)
  checked = tonumber(checked or '')
  if settings.tiered or settings.retention_ms < 0 then
    return false
  end
  if not checked or checked > now then
    return false, now
  end
  if now - checked < settings.check_interval_ms then
    return false
  end
  return true, now
end

-- Reads the stream in pages, from an id up to one, each of as many entries as a quarter of the bytes that
-- one script may read holds, by what was seen. `next(most)` gives a page, empty at the end;
-- `is_enough(entries)` tells whether so many entries, or all of those bytes, were seen.
local ENTRY_BYTES_AT_ONCE = 8388608
local function stream_pages(from, to)
  local pages, bytes, count = { seen = 0 }, 0, 8
  function pages.next(most)
    local page = redis.call('XRANGE', stream, from, to, 'COUNT', math.min(most or count, count))
    for _, entry in ipairs(page) do
      for _, value in ipairs(entry[2]) do
        bytes = bytes + #value
      end
      from = '(' .. entry[1]
    end
    pages.seen = pages.seen + #page
    count = math.floor(ENTRY_BYTES_AT_ONCE * pages.seen / (4 * bytes + 1))
    count = math.max(1, math.min(100, count))
    return page
  end
  function pages.is_enough(entries)
    return pages.seen >= entries or bytes >= ENTRY_BYTES_AT_ONCE
  end
  return pages
end

-- The gaps that end above an offset, with those that have no entry of their own.
local function gaps_above(offset)
  local found, st = {}, redis.call('HMGET', state, 'gaps', 'quarantined')
  for from, to in string.gmatch((st[1] or '') .. ',' .. (st[2] or ''), '(%d+)-(%d+)') do
    if tonumber(to) > offset then
      found[#found + 1] = { from = tonumber(from), to = tonumber(to) }
    end
  end
  return found
end

-- Deletes what half a transaction left in those gaps, which no reader is given. Returns whether there may
-- be more: all others who use the server get their turn before the next part.
local function drop_halves(offset)
  for _, gap in ipairs(gaps_above(offset)) do
    local pages = stream_pages(int(gap.from), int(gap.to - 1))
    local page = pages.next()
    while page[1] do
      for _, entry in ipairs(page) do
        if entry[2][1] ~= '__gap' then
          redis.call('XDEL', stream, entry[1])
        end
      end
      if pages.is_enough(100) then
        return true
      end
      page = pages.next()
    end
  end
  return false
end

-- How many entries lie in the gaps that end above an offset, and a function that tells whether an offset
-- lies in one of those: a recovery's own entries, and what half a transaction left there, are no records.
-- Of a half of more bytes than one script may read, those that were read count.
local function entries_in_gaps(start)
  local gaps, entries = gaps_above(start), 0
  for _, gap in ipairs(gaps) do
    local pages = stream_pages(int(gap.from), int(gap.to - 1))
    while not pages.is_enough(math.huge) and pages.next()[1] do
    end
    entries = entries + pages.seen
  end
  return entries, function(offset)
    for _, gap in ipairs(gaps) do
      if gap.from <= offset and offset < gap.to then
        return true
      end
    end
    return false
  end
end

-- Write-time retention of an untiered topic: Kafka's three passes, each from the oldest segment to
-- the first that does not qualify, then by entries; the pass by time only if asked for. `p`
-- (log_start, log_end, closed_bytes, segment) is changed in place. The caller stores it, then calls
-- the returned function (see `trimming`); nil: nothing goes. Also returns whether more may go: as what
-- goes is the oldest, a part of it is a log start that was good a moment before, and all others who use
-- the server get their turn before the next part. `made` is how many entries the call appends, which
-- may be as many segments: twice as many may go, so that retention keeps up with any appends.
local SEGMENTS_AT_ONCE, ENTRIES_AT_ONCE = 250, 250 -- a few milliseconds
local function retain(p, settings, now, by_time, made)
  local left, is_cut = SEGMENTS_AT_ONCE + 2 * made, false
  local first_kept = 0 -- below the log start while there is what a trim left that was cut short
  local closed = closed_by_age()
  local at = 1
  local function walk(expired)
    while true do
      local candidate, ending
      if closed(at) then
        -- Not the base of the one that follows: who waits where the records end that go, before a gap,
        -- stays in the log.
        candidate, ending = closed(at), closed(at).ending
      elseif p.segment.bytes > 0 then
        candidate, ending = p.segment, p.log_end
      else
        return -- an empty last segment never goes
      end
      if not expired(candidate, ending) then
        return
      end
      if left == 0 then
        is_cut = true
        return
      end
      left = left - 1
      if closed(at) then
        at = at + 1
      else
        p.segment = new_segment(p.log_end, now) -- the open one rolls before it goes
      end
      first_kept = math.max(first_kept, ending)
    end
  end
  walk(function(s, ending)
    return s ~= p.segment and ending <= p.log_start
  end)
  if settings.retention_bytes >= 0 then
    local excess = p.closed_bytes + p.segment.bytes - settings.retention_bytes
    for i = 1, at - 1 do
      excess = excess - closed(i).bytes
    end
    walk(function(s)
      if excess - s.bytes < 0 then
        return false
      end
      excess = excess - s.bytes
      return true
    end)
  end
  if by_time and settings.retention_ms >= 0 then
    walk(function(s)
      local largest = s.max >= 0 and s.max or s.modified
      return now - largest > settings.retention_ms
    end)
  end
  local excess = settings.retention_entries >= 0
    and redis.call('XLEN', stream) - settings.retention_entries or 0
  local is_in_gap
  if excess > 0 then
    local in_gaps
    in_gaps, is_in_gap = entries_in_gaps(p.log_start)
    excess = excess - in_gaps
  end
  local pages = stream_pages('-', '+')
  while excess > 0 do
    if pages.seen >= 2 * made and pages.is_enough(ENTRIES_AT_ONCE) then
      is_cut = true
      break
    end
    local page = pages.next(excess)
    if not page[1] then
      break
    end
    for _, entry in ipairs(page) do
      local last = tonumber(string.match(entry[1], '%d+'))
      first_kept = math.max(first_kept, last + 1)
      if not is_in_gap(last) then
        excess = excess - 1
      end
    end
  end
  if first_kept > 0 then
    local freed, trim = trimming(first_kept)
    p.log_start = math.max(p.log_start, first_kept)
    p.closed_bytes = p.closed_bytes - freed
    return trim, is_cut
  end
  return nil, false
end

-- Stores what `retain` changed, then drops what goes.
local function forget(p, local_log_start, trim)
  redis.call('HSET', state, 'log_start', int(p.log_start), 'local_log_start', int(local_log_start),
    'segment', format_segment(p.segment), 'closed_bytes', int(p.closed_bytes))
  trim()
end

-- What a change of server means for a partition; see recovery.py. After run.lua and common.lua.

-- script: recover
-- Settles a partition whose server may have lost its tail, or that has used up its reservation.
-- ARGV: at_least, 1 if a clean stop may be adopted, now_ms or '', topic_id or '', where looking through
-- the producers goes on or '0', what is reserved of a partition at first, records of a call that found too
-- few offsets or 0, then one of
--   ''                    there is no cold tier
--   'ask', room           there is one; answers what to reserve, if fewer than that are left
--   start, end, run id    what was reserved there, asked for under that run; then what was archived
--                         last of each producer with checksums: id, value, id, value …
-- Returns {'OK'} when nothing had to be done or it is done, {'UNSYNCED'} when the gap is in place
-- but appends are still refused (see recovery.py), {'CLEAN'} when a clean stop can be adopted
-- instead, {'RESERVE', at least, run id, how many or ''}, {'UNKNOWN_TOPIC_OR_PARTITION'},
-- {'UNKNOWN_TOPIC_ID', found}, {'PRODUCERS', where to go on}: a part of the producers was looked
-- through, and all others who use the server get their turn before the next part.
--
-- Offsets that a reader may have seen are never given to other records. In a tiered partition all of
-- them lie below the next reservation: reservation.py has the argument. Without a cold tier they are
-- bounded by the time since the last append that survived. This holds even if a recovery and the
-- appends after it are lost in turn: the next recovery is later, so its gap ends above all offsets
-- they gave out. It holds as long as the clock was not set back between the two. So without a cold
-- tier, a recovery is on the server's disk, if that can be made sure of, before an append follows.
-- Then it can only be lost with the disk, and after it only what an append-only file loses: the
-- appends of a second or two.

local st = redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'local_log_start', 'segment',
  'closed_bytes', 'gaps', 'clean', 'index', 'paused', 'reserved_end', 'settings', 'quarantined',
  'appended')
if not st[1] then
  return { 'UNKNOWN_TOPIC_OR_PARTITION' }
end
if ARGV[4] ~= '' and ARGV[4] ~= st[1] then
  return { 'UNKNOWN_TOPIC_ID', st[1] } -- a reservation for one creation does not serve another
end
local log_end = tonumber(st[3])
local known_end = math.max(tonumber(ARGV[1]), tonumber(st[4]))
local reserved_end = st[11] and tonumber(st[11])
local closed_bytes = tonumber(st[6])
local _, index_timestamp, largest = string.match(st[9], '(%S+) (%S+) (%S+)')
check_types()
assert(log_end and closed_bytes and largest and (reserved_end or not st[11]) and st[12],
  'not lakelog\'s numbers')
-- Who looked before the topic became untiered may offer to reserve.
local is_tiered = parse_settings(st[12]).tiered
local asks, start = is_tiered and ARGV[8] == 'ask', is_tiered and tonumber(ARGV[8])
local MAX_DECODED_BYTES = 9007199254740991 -- as good as none, until the topic is altered
local FEW_OFFSETS = 1024 -- as in reservation.py
local PRODUCERS_AT_ONCE = 500 -- a few milliseconds
local UNSYNCED = '2' -- as `paused`: the gap is in place, but may not be on the disk
local is_own = st[2] == RUN_ID

-- Notes how far appends may go. An old lakelog without reservations reads only settings of 14
-- numbers, so from here on its appends to the partition end in an error before they write.
local function reserve(ending)
  local settings = st[12]
  if select(2, string.gsub(settings, '%S+', '')) == 14 then
    settings = settings .. ' ' .. int(MAX_DECODED_BYTES)
  end
  redis.call('HSET', state, 'reserved_end', ending, 'settings', settings)
end

-- Where the partition began with few: as many as it has got, or as the call needs.
local few
if reserved_end and reserved_end < tonumber(ARGV[6]) then
  few = tonumber(string.match(st[14] or '', '^%d+') or 0)
end
local refused = tonumber(ARGV[7])

-- How many offsets are enough; see reservation.least_room.
local function least_room()
  return few and math.max(math.max(FEW_OFFSETS, few) / 2, refused) or tonumber(ARGV[9])
end

local half_adopted = is_own and st[10] and not st[8] -- see recovery.lua
if log_end >= known_end then
  if is_own and not half_adopted then
    if not asks and not start
      or asks and reserved_end
      and reserved_end - log_end >= least_room() then
      return { 'OK' }
    end
    if start and not reserved_end and ARGV[10] == RUN_ID and log_end <= tonumber(ARGV[9])
      or start and start == reserved_end then
      reserve(ARGV[9])
      return { 'OK' }
    end
    if start and reserved_end and start < reserved_end then
      return { 'OK' } -- a later caller has reserved more
    end
    if not reserved_end then
      -- It was untiered until now, or an older lakelog wrote it. All offsets that it has given out
      -- lie below the next reservation's end, so it can go on without a gap.
      return { 'RESERVE', int(math.max(log_end, known_end)), RUN_ID, '' }
    end
  end
  -- A server that took over may hold the mark of a stop after which its predecessor went on.
  if ARGV[2] == '1' and (half_adopted or st[8] and not TOOK_OVER) then
    return { 'CLEAN' }
  end
end
local now = server_time(ARGV[3])
local open = parse_segment(st[5])
-- Half a transaction may lie above the log end: the gap covers it.
known_end = math.max(known_end, drop_half_transaction((st[7] or '') .. ',' .. (st[13] or ''), log_end, open.base))

local function end_by_clock()
  local elapsed = now - open.modified
  local ending = log_end + elapsed * APPENDS_PER_MS
  -- A clock that jumped says nothing.
  if elapsed <= 0 or elapsed > YEAR_MS or ending <= known_end then
    return math.max(log_end, known_end) + GAP_SPAN
  end
  return ending
end

if asks or start and (ARGV[10] ~= RUN_ID or start < math.max(log_end, known_end)) then
  -- Nothing outside of Redis bounds what was written without a reservation. (A reservation's own end
  -- counts only if the cold table was lost.)
  local least = math.max(log_end, known_end, reserved_end or end_by_clock())
  return { 'RESERVE', int(least), RUN_ID, few and int(math.max(few, refused)) or '' }
end
if is_own and st[10] == UNSYNCED and ARGV[2] == '0' and log_end >= known_end then
  return { 'UNSYNCED' }
end
-- For a producer with checksums, its surviving records count, so that a repeat of its work appends
-- the others. What was archived survives too. So do those of a Kafka client, which sends again what had
-- no answer and nothing else. Any other producer must start again, unless nothing was lost. That is done before anything else, and until it is all done the partition stays as it was
-- left: who begins with it anew finds what is done already, and changes none of it.
local nothing_lost = is_own and not half_adopted and log_end >= known_end
if not nothing_lost then
  local seen_under = ' ' .. RUN_ID .. ' ' .. int(log_end) -- what was seen before counts only then
  local cursor = string.match(ARGV[5], '^%d+')
  if ARGV[5] ~= cursor .. seen_under then
    cursor = '0'
  end
  local page = redis.call('HSCAN', producers, cursor, 'COUNT', PRODUCERS_AT_ONCE)
  local gone = {}
  for i = 1, #page[2], 2 do
    local id, value = page[2][i], page[2][i + 1]
    local kept = without_calls_from(value, log_end)
    if not has_checksum(kept) then
      gone[#gone + 1] = id
    elseif kept ~= value then
      redis.call('HSET', producers, id, kept)
    end
  end
  for i = 1, #gone, 1000 do
    redis.call('HDEL', producers, unpack(gone, i, math.min(i + 999, #gone)))
  end
  if page[1] ~= '0' then
    return { 'PRODUCERS', page[1] .. seen_under }
  end
end
for i = 11, nothing_lost and 0 or #ARGV, 2 do
  local base = tonumber(string.match(ARGV[i + 1], '^%d+|%d+ %d+ (%d+)'))
  if redis.call('HEXISTS', producers, ARGV[i]) == 0 or base >= log_end then
    redis.call('HSET', producers, ARGV[i], (string.gsub(ARGV[i + 1], '|', ' ' .. int(now) .. '|', 1)))
    redis.call('HSET', state, 'checksums', 1)
  end
end
local gap_end = start or end_by_clock()
-- Half of an older lakelog's append may end an append-only file that was cut. Redis 7.0 leaves it there
-- and runs it at the start after the next, with what was written since: a stream that it closes would
-- refuse all entries from here on. So the file has it opened, whether or not it is closed now. Entries of
-- the half lie there by then, none of them past the gap: only above them can it be opened. If they take
-- the gap entry's place it is refused, and what is declared below covers them as well.
open_stream(math.max(log_end, gap_end - 1))
if gap_end > log_end then -- else all that was reserved is there
  local id = int(gap_end - 1) .. '-' .. int(gap_end - log_end)
  local added = add_entry(log_end, id, '__gap', int(log_end) .. '-' .. int(gap_end))
  if added.err and #redis.call('XRANGE', stream, id, id) == 0 then
    return added
  end
  open_stream(gap_end)
  redis.call('HSET', state, 'gaps',
    (st[7] and st[7] .. ',' or '') .. int(log_end) .. '-' .. int(gap_end))
end
-- While a slot is on its way to another server, a key that is gone may not be asked for.
local producer_count = redis.pcall('HLEN', producers)
if type(producer_count) ~= 'number' then
  producer_count = 0
end
if open.bytes > 0 then
  close_segment(open, log_end)
  closed_bytes = closed_bytes + open.bytes
end
redis.call('HDEL', state, 'clean', 'paused', 'adopted_from', 'reserved_end', 'appending')
if start then
  reserve(ARGV[9])
else
  redis.call('HSET', state, 'paused', UNSYNCED) -- half adopted, until it is on the disk
end
redis.call('HSET', state, 'run_id', RUN_ID, 'log_end', int(gap_end),
  'segment', format_segment(new_segment(gap_end, now)), 'closed_bytes', int(closed_bytes),
  'producer_count', int(producer_count), 'index', '0 ' .. index_timestamp .. ' ' .. largest)
return { start and 'OK' or 'UNSYNCED' }

-- script: pause
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
    -- at the start after the next: see recovery.lua.
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

-- Settles a partition whose server may have lost its tail. ARGV: at_least, 1 if a clean stop may be
-- adopted, now_ms or ''.
-- Returns {'OK'} when nothing had to be done or the gap is in place, {'CLEAN'} when a clean stop
-- can be adopted instead, {'UNKNOWN_TOPIC_OR_PARTITION'}.
--
-- Offsets that some reader may have seen are never given to other records: a gap entry spans
-- everything that can have been handed out since the last append that survived. How much that is,
-- the time since then bounds. It bounds it also when a recovery and the appends after it were lost
-- in their turn: the next recovery is later, so its gap ends above all that they gave. (A fixed
-- span would end both gaps at one offset, and the records after them would share their numbers.)

local st = redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'local_log_start', 'segment',
  'closed_bytes', 'gaps', 'clean', 'index', 'paused')
if not st[1] then
  return { 'UNKNOWN_TOPIC_OR_PARTITION' }
end
local log_end = tonumber(st[3])
local known_end = math.max(tonumber(ARGV[1]), tonumber(st[4]))
local is_own = st[2] == RUN_ID
local half_adopted = is_own and st[10] and not st[8] -- see pause.lua
if log_end >= known_end then
  if is_own and not half_adopted then
    return { 'OK' }
  end
  -- A server that took over from another may hold the mark of a stop after which that one went on.
  if ARGV[2] == '1' and (half_adopted or st[8] and not TOOK_OVER) then
    return { 'CLEAN' }
  end
end
local now = server_time(ARGV[3])
local open = parse_segment(st[5])
-- Half a transaction may lie above the log end: the gap takes it in.
known_end = math.max(known_end, drop_half_transaction(st[7], log_end, open.base))
local elapsed = now - open.modified
local gap_end = log_end + elapsed * APPENDS_PER_MS
-- A clock that jumped says nothing.
if elapsed <= 0 or elapsed > YEAR_MS or gap_end <= known_end then
  gap_end = math.max(log_end, known_end) + GAP_SPAN
end
redis.call('XADD', stream, int(gap_end - 1) .. '-' .. int(gap_end - log_end),
  '__gap', int(log_end) .. '-' .. int(gap_end))
local closed_bytes = tonumber(st[6])
if open.bytes > 0 then
  close_segment(open, log_end)
  closed_bytes = closed_bytes + open.bytes
end
local _, index_timestamp, largest = string.match(st[9], '(%S+) (%S+) (%S+)')
-- Of a producer with checksums, what survived is what there is of its records, so that a repeat of
-- its work appends the others. Any other producer is to begin anew.
local known, kept = redis.call('HGETALL', producers), {}
for i = 1, #known, 2 do
  known[i + 1] = without_calls_from(known[i + 1], log_end)
  if string.find(known[i + 1], '^%d+ %d+|%d+ %d+ %d+ %-?%d+ %x') then
    kept[#kept + 1] = { known[i], known[i + 1] }
  end
end
redis.call('DEL', producers)
for _, producer in ipairs(kept) do
  redis.call('HSET', producers, producer[1], producer[2])
end
redis.call('HDEL', state, 'clean', 'paused', 'adopted_from')
redis.call('HSET', state, 'run_id', RUN_ID, 'log_end', int(gap_end),
  'segment', format_segment(new_segment(gap_end, now)), 'closed_bytes', int(closed_bytes),
  'producer_count', int(#kept), 'index', '0 ' .. index_timestamp .. ' ' .. largest,
  'gaps', (st[7] and st[7] .. ',' or '') .. int(log_end) .. '-' .. int(gap_end))
return { 'OK' }

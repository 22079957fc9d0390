-- Rights what a partition's keys say of its entries; see mending.py. After run.lua and common.lua.

-- script: mend
-- Rights what can be derived from a partition's entries: sums, statistics of segments, the time index.
-- ARGV: topic_id, then triples: what, and two values:
--   'closed'         a closed segment's text as it was seen, and as it is to be
--   'open'           likewise, the open segment's
--   'closed_bytes'   as they were seen, and the sum of the closed segments then; '' if one is foreign
--   'producer_count' '', ''
--   'largest_entry'  at least so many bytes, ''
--   'largest'        at least that timestamp, ''
--   'unindex'        an offset of the time index, and its timestamp as it was seen
--   'index'          an offset, and the largest timestamp up to it
--   'settings'       as they were seen, and their config version and as they are to be
-- Returns {'OK', for each 1, or 0 if it is no longer as it was seen} or {'UNKNOWN_TOPIC_ID', found or ''}.
--
-- No record, offset or start of the log is ever touched. Appends and trims may go on: each triple is
-- compared with what is there now; `closed_bytes`, which each closed segment changes, is changed by what
-- it lacked.

local st = redis.call('HMGET', state, 'topic_id', 'segment', 'index', 'largest_entry', 'log_end',
  'local_log_start')
if not st[1] or st[1] ~= ARGV[1] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
check_types()

local does = {}

function does.closed(seen, held)
  local base = parse_closed(held).base
  if tonumber(redis.call('ZSCORE', segments, seen) or '') ~= base then
    return 0
  end
  redis.call('ZREM', segments, seen)
  redis.call('ZADD', segments, int(base), held)
  return 1
end

function does.open(seen, held)
  if redis.call('HGET', state, 'segment') ~= seen then
    return 0
  end
  redis.call('HSET', state, 'segment', format_segment(parse_segment(held)))
  return 1
end

function does.closed_bytes(seen, held)
  assert(tonumber(held), 'a closed segment is not lakelog\'s')
  local now = redis.call('HGET', state, 'closed_bytes') or ''
  if tonumber(seen) and tonumber(now) then
    held = int(tonumber(now) + tonumber(held) - tonumber(seen))
  elseif now ~= seen then
    return 0
  end
  redis.call('HSET', state, 'closed_bytes', held)
  return 1
end

function does.producer_count()
  redis.call('HSET', state, 'producer_count', int(redis.call('HLEN', producers)))
  return 1
end

function does.largest_entry(bytes)
  redis.call('HSET', state, 'largest_entry',
    int(math.max(tonumber(st[4] or '') or 0, tonumber(bytes))))
  return 1
end

function does.largest(timestamp)
  local bytes, last, largest = string.match(st[3] or '', '^(%-?%d+) (%-?%d+) (%-?%d+)$')
  if not bytes then
    return 0
  end
  redis.call('HSET', state, 'index',
    bytes .. ' ' .. last .. ' ' .. int(math.max(tonumber(largest), tonumber(timestamp))))
  return 1
end

function does.unindex(offset, seen)
  if tonumber(redis.call('ZSCORE', times, offset) or '') ~= tonumber(seen) then
    return 0
  end
  redis.call('ZREM', times, offset)
  return 1
end

function does.index(offset, timestamp)
  local at = tonumber(offset)
  if at < tonumber(st[6] or '') or at >= tonumber(st[5] or '') then
    return 0 -- trimmed since
  end
  redis.call('ZADD', times, 'NX', int(tonumber(timestamp)), offset)
  return 1
end

function does.settings(seen, held)
  local version, text = string.match(held, '^(%d+) (.*)$')
  local now = redis.call('HMGET', state, 'config_version', 'settings')
  if now[1] ~= version or (now[2] or '') ~= seen then
    return 0
  end
  redis.call('HSET', state, 'settings', text)
  return 1
end

local done = { 'OK' }
for i = 2, #ARGV, 3 do
  done[#done + 1] = does[ARGV[i]](ARGV[i + 1], ARGV[i + 2])
end
return done

-- script: rebuild
-- Writes `:state` anew, and the closed segments that are lacking, from what was read of the stream: where
-- Redis evicted one of the keys, or a hand deleted it. The entries, time index and producers stay.
-- ARGV: topic_id, generation, config_version, settings, now_ms or '', the stream's newest id as it was
-- seen, log_end, log_start, local_log_start, gaps and gaps without an entry ('' if there are none), the
-- open segment's base as it was seen or is to be, then base and end of each closed segment that is lacking.
-- Returns {'OK'}, or {'CHANGED'}: it is no longer as it was seen.
--
-- The partition takes appends only after recover(), which goes past every offset that was given out.
-- Sizes and timestamps of what is added are left to mend.lua: until then retention goes by the time of now.

local st = redis.call('HMGET', state, 'topic_id', 'segment')
local newest = redis.call('XINFO', 'STREAM', stream)
local now = server_time(ARGV[5])
check_types()
local last_id
for i = 1, #newest, 2 do
  if newest[i] == 'last-generated-id' then
    last_id = newest[i + 1]
  end
end
if last_id ~= ARGV[6] or st[1] and (st[1] ~= ARGV[1] or int(parse_segment(st[2]).base) ~= ARGV[12]) then
  return { 'CHANGED' }
end
for i = 13, #ARGV, 2 do
  local s = new_segment(tonumber(ARGV[i]), now)
  close_segment(s, tonumber(ARGV[i + 1]))
end
if st[1] then
  return { 'OK' }
end
redis.call('HSET', state, 'topic_id', ARGV[1], 'generation', ARGV[2], 'config_version', ARGV[3],
  'settings', ARGV[4], 'run_id', '', 'forgotten', RUN_ID, 'log_end', ARGV[7], 'log_start', ARGV[8],
  'local_log_start', ARGV[9], 'segment', format_segment(new_segment(tonumber(ARGV[12]), now)),
  'index', '0 -1 -1', 'closed_bytes', '0', 'producer_count', int(redis.call('HLEN', producers)))
for i, name in ipairs({ 'gaps', 'quarantined' }) do
  if ARGV[9 + i] ~= '' then
    redis.call('HSET', state, name, ARGV[9 + i])
  end
end
return { 'OK' }

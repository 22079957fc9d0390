-- What is read of a partition in one step; nothing is written. After run.lua and common.lua.

-- script: offsets
-- One consistent look at a partition: its state, its closed segments if they are asked for, and if
-- asked for what its producers with checksums sent last.
-- ARGV: how many calls of each (0, 1, or all), now_ms or '', '1' for the segments.
-- Returns state, number of closed segments, these, producers: id, value, id, value …, without those
-- that sent nothing for producer.id.expiration.ms.

local found = {
  redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'log_start', 'local_log_start',
    'segment', 'index', 'closed_bytes', 'unarchived_since', 'gaps', 'paused', 'clean',
    'reserved_end', 'quarantined', 'lost_from', 'settings', 'checksums',
    'appended', 'archived_into'),
  redis.call('ZCARD', segments),
  ARGV[3] == '1' and redis.call('ZRANGE', segments, 0, -1) or {},
  {},
}
local calls = tonumber(ARGV[1])
if calls > 0 and found[1][17] then
  local lasting_ms = parse_settings(found[1][16]).producer_expiration_ms
  local now = server_time(ARGV[2])
  local known = redis.call('HGETALL', producers)
  for i = 1, #known, 2 do
    local id, value = known[i], known[i + 1]
    local last_ms = tonumber(string.match(value, '^%d+ (%d+)') or '')
    if last_ms and now - last_ms < lasting_ms and has_checksum(value) then
      found[4][#found[4] + 1] = id
      found[4][#found[4] + 1] = calls > 1 and value or string.match(value, '^[^|]*|[^|]*')
    end
  end
end
return found

-- script: inspect
-- One look at all of a partition except its entries and time index, even if keys are damaged.
-- Returns the replies of HGETALL state, ZRANGE segments WITHSCORES, HLEN producers and XLEN stream;
-- in place of one that failed, {'ERR', why}.

local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return { 'ERR', reply.err }
  end
  return reply
end

return { ask('HGETALL', state), ask('ZRANGE', segments, 0, -1, 'WITHSCORES'), ask('HLEN', producers),
  ask('XLEN', stream) }

-- script: find_timestamp
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
local at, left, several = ARGV[3] == '' and int(least) or '(' .. ARGV[3], tonumber(ARGV[4]), 8
while not from do
  local page = closed_from(at, '+inf', math.min(several, left))
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

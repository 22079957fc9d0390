-- Appends one call (1..n entries) to a topic-partition, or says why not.
--
-- ARGV: topic_id, sent_under, now_ms or '', producer_id or '' (it keeps no state), epoch,
--   first_sequence, last_sequence,
--   checksum before and with this call or '' twice, how many replicas must be online, number of entries;
--   then for each entry:
--   record_count, size_bytes, decoded_bytes, min_timestamp_ms, max_timestamp_ms, first_keyless or
--   -1, number of values, the values.
-- Returns {'OK', base offset, append time or -1, log start, 1 if a duplicate} or {reason, …}.
--
-- Everything is checked before the first write, because Lua does not roll back. That includes the
-- types of the keys (by reading each once), and the stream's (its XADD is the first write, but for
-- retention by time, which stands by itself).

local SEQUENCES = INT32_MAX + 1
local FOUR_CALLS = '^[^|]*(' .. string.rep('|[^|]*', 4) .. ')'

local st = redis.call('HMGET', state, 'topic_id', 'run_id', 'paused', 'settings', 'log_end',
  'segment', 'index', 'log_start', 'local_log_start', 'producer_count', 'unarchived_since',
  'adopted_from', 'closed_bytes', 'clean', 'largest_entry', 'reserved_end', 'forgotten',
  'retention_checked', 'appended', 'allowance', 'checksums')
if not st[1] then
  return { 'UNKNOWN_TOPIC_OR_PARTITION' }
end
if st[1] ~= ARGV[1] then
  return { 'UNKNOWN_TOPIC_ID', st[1] }
end
if st[2] ~= RUN_ID then
  return { 'RECOVERY_NEEDED' }
end
if st[3] then
  -- Paused without a clean mark: a process died while it took over after a stop. recover() settles it.
  return { st[14] and 'PAUSED' or 'RECOVERY_NEEDED' }
end
-- 'any': as with Kafka, where whoever sends says neither what it sent before nor under which run.
local is_any = ARGV[2] == 'any'
local sent_under = is_any and '' or ARGV[2]
if sent_under ~= '' and sent_under ~= RUN_ID and sent_under ~= st[12] then
  return { 'UNKNOWN_PRODUCER', 'the server changed since the call was first sent' }
end

local settings = parse_settings(st[4])
local now = server_time(ARGV[3])
local p = {
  log_end = tonumber(st[5]), segment = parse_segment(st[6]),
  log_start = tonumber(st[8]), closed_bytes = tonumber(st[13]),
}
local producer_count = tonumber(st[10])
local largest_entry = tonumber(st[15] or '0')
local index_bytes, index_timestamp, largest = string.match(st[7], '(%S+) (%S+) (%S+)')
index_bytes, index_timestamp = tonumber(index_bytes), tonumber(index_timestamp)
largest = tonumber(largest)
assert(p.log_end and p.log_start and p.closed_bytes and producer_count and largest_entry
  and index_bytes and index_timestamp and largest and tonumber(st[9]), 'not lakelog\'s numbers')

-- Idempotence ------------------------------------------------------------------------------------
local producer_id, epoch = ARGV[4], tonumber(ARGV[5])
local first_sequence, last_sequence = tonumber(ARGV[6]), tonumber(ARGV[7])
local checksum_before, checksum = ARGV[8], ARGV[9]
-- A producer's value: `epoch last_ms`, then its last five calls, the newest first, each as
-- `|first_sequence last_sequence base_offset append_time[ checksum]`, ` k` for a checksum where the
-- producer is one of Kafka's: what survives of it counts after a lost tail. Searched as text: parsing the
-- numbers of five calls takes longer than the append itself.
local calls = '' -- those that are kept beside this one
local has_state = producer_id ~= ''
local known = has_state and redis.call('HGET', producers, producer_id)
local is_new = has_state and not known
if known then
  local known_epoch, last_ms, newest = string.match(known, '^(%d+) (%d+)|%d+ (%d+)')
  known_epoch = tonumber(known_epoch)
  if sent_under == '' and now - last_ms >= settings.producer_expiration_ms then
    known = false -- idle too long, as if never seen; but a resend is compared as long as possible
  elseif epoch < known_epoch then
    return { 'FENCED', known_epoch }
  elseif epoch == known_epoch then
    local sequences = '|' .. int(first_sequence) .. ' ' .. int(last_sequence) .. ' '
    local same = string.find(known, sequences, 1, true)
    if same then
      local base, append_time, appended =
        string.match(known, '^|%d+ %d+ (%d+) (%-?%d+) ?(%x*)', same)
      if appended ~= checksum then
        return { 'OTHER_RECORDS' }
      end
      -- Written again, so that a WAIT after this answer covers the first answer's effects.
      redis.call('HSET', state, 'log_end', int(p.log_end))
      return { 'OK', tonumber(base), tonumber(append_time), p.log_start, 1 }
    end
    local expected = (newest + 1) % SEQUENCES
    if first_sequence ~= expected then
      return { 'OUT_OF_ORDER', expected }
    end
    if checksum_before ~= string.match(known, '^[^|]*|%d+ %d+ %d+ %-?%d+ ?(%x*)') then
      return { string.find(known, ' cut', 1, true) and 'CUT' or 'OTHER_RECORDS' }
    end
    calls = string.match(known, FOUR_CALLS) or string.match(known, '^[^|]*(.*)')
  elseif first_sequence ~= 0 then
    return { 'OUT_OF_ORDER', 0 }
  end
end
if not known and has_state and not is_any then
  if first_sequence ~= 0 then
    return { 'UNKNOWN_PRODUCER', 'Redis does not know the producer' }
  end
  if sent_under ~= ''
    and (sent_under == st[17] or redis.call('HLEN', producers) ~= producer_count) then
    return { 'UNKNOWN_PRODUCER', 'producer state was deleted since' }
  end
end

-- The entries ------------------------------------------------------------------------------------
local entries, at, total = {}, 12, 0
for i = 1, tonumber(ARGV[11]) do
  local values = tonumber(ARGV[at + 6])
  local e = {
    count = tonumber(ARGV[at]), bytes = tonumber(ARGV[at + 1]), decoded = tonumber(ARGV[at + 2]),
    min = tonumber(ARGV[at + 3]), max = tonumber(ARGV[at + 4]), keyless = tonumber(ARGV[at + 5]),
    from = at + 7, to = at + 6 + values,
  }
  entries[i] = e
  total = total + e.count
  at = at + 7 + values
end
if not settings.log_append_time then
  for i, e in ipairs(entries) do
    if e.min >= 0 and now - e.min > settings.before_max_ms
      or e.max >= 0 and e.max - now > settings.after_max_ms then
      local keyless, at_record = -1, 0 -- of its record, that is what is wrong
      for j = #entries, 1, -1 do
        if settings.keys_required and entries[j].keyless >= 0 then
          keyless, at_record = j - 1, entries[j].keyless
        end
      end
      return { 'INVALID_TIMESTAMP', i - 1, now,
        string.format('%.0f', settings.before_max_ms),
        string.format('%.0f', settings.after_max_ms), keyless, at_record }
    end
  end
end
for i, e in ipairs(entries) do
  if e.bytes > settings.max_message_bytes then
    return { 'TOO_LARGE', i - 1, e.bytes, 'max.message.bytes', settings.max_message_bytes }
  end
  if e.bytes > settings.segment_bytes then
    return { 'TOO_LARGE', i - 1, e.bytes, 'segment.bytes', settings.segment_bytes }
  end
  if e.decoded > settings.max_decoded_bytes then
    return { 'TOO_LARGE', i - 1, e.decoded, 'lakelog.max.decoded.bytes',
      settings.max_decoded_bytes }
  end
  if settings.keys_required and e.keyless >= 0 then
    return { 'KEYLESS', i - 1, e.keyless }
  end
end
if p.log_end + total >= 9007199254740992 then
  return { 'FULL_OF_OFFSETS', p.log_end }
end
if settings.tiered and st[16] and p.log_end + total > tonumber(st[16]) then
  return { 'RESERVED_USED_UP', p.log_end, tonumber(st[16]) }
end
-- Quotas: what a partition may take is in its state, so that this asks nobody. Where it is used up, the
-- caller asks for more (quota.lua) and sends the call again.
local allowance
if settings.is_hot_limited or settings.is_rate_limited then
  allowance = parse_allowance(st[20])
  local bytes = 0
  for _, e in ipairs(entries) do
    bytes = bytes + e.bytes
  end
  if settings.is_rate_limited and allowance.appended < bytes
    or settings.is_hot_limited and p.closed_bytes + p.segment.bytes + bytes > allowance.held
      and held_bytes(p.closed_bytes, p.segment, tonumber(st[9]), p.log_end) + bytes > allowance.held
  then
    return { 'ALLOWANCE_USED_UP',
      held_bytes(p.closed_bytes, p.segment, tonumber(st[9]), p.log_end), allowance.version,
      allowance.appended }
  end
  allowance.appended = math.max(0, allowance.appended - bytes)
end
if ARGV[10] ~= '0' then
  local online = select(2, string.gsub(REPLICATION, 'state=online', ''))
  if online < tonumber(ARGV[10]) then
    return { 'NOT_ENOUGH_REPLICAS', online, tonumber(ARGV[10]) }
  end
end
check_types() -- an error after the first write would leave half of the call

-- Retention by time ------------------------------------------------------------------------------
-- Before the append, which stands whatever becomes of it. So what is appended now, however old, can be
-- read until the next check.
local function retained(by_time)
  local log_start, segment = p.log_start, p.segment
  -- May roll the segment.
  local went_well, trim, is_cut = pcall(retain, p, settings, now, by_time, #entries)
  if not went_well then
    -- A closed segment is foreign. The append stands; trim.lua and readers name the segment.
    p.log_start, p.segment = log_start, segment
  end
  return went_well and trim, went_well and is_cut
end
local is_due, checked = check_due(st[18], settings, now)
if is_due then
  local trim, is_cut = retained(true)
  if is_cut then
    checked = nil -- the next append goes on with it
  end
  if trim then
    st[8], st[9] = p.log_start, math.max(tonumber(st[9]), p.log_start)
    st[13] = p.closed_bytes
    forget(p, st[9], trim)
  end
end

-- Writes -----------------------------------------------------------------------------------------
local base_offset = p.log_end
local append_time = settings.log_append_time and now or -1
local appended_records, appended_bytes = string.match(st[19] or '', '^(%d+) (%d+)$')
appended_records, appended_bytes = (appended_records or 0) + total, appended_bytes or 0
for i, e in ipairs(entries) do
  local last = p.log_end + e.count - 1
  local id = string.format('%d-%d', last, e.count)
  local max = e.max
  local added
  if settings.log_append_time then
    max = now
    local values = { unpack(ARGV, e.from, e.to) }
    values[#values + 1] = 't'
    values[#values + 1] = int(now)
    added = add_entry(p.log_end, id, unpack(values))
  else
    added = add_entry(p.log_end, id, unpack(ARGV, e.from, e.to))
  end
  if added.err then
    return added -- the very first write: the key is no stream, or holds a foreign id
  end

  -- Kafka's shouldRoll: the entry would exceed segment.bytes; its time is too far from the segment's
  -- first entry's; its offset does not fit 32 bits relative to the base.
  local s = p.segment
  local waited = s.first >= 0 and max - s.first or now - s.created
  if s.bytes > settings.segment_bytes - e.bytes
    or s.bytes > 0 and waited > settings.segment_ms - jitter_ms(settings, st[1], s.base)
    or last - s.base > INT32_MAX then
    close_segment(s, p.log_end)
    p.closed_bytes = p.closed_bytes + s.bytes
    s = new_segment(p.log_end, now)
    p.segment = s
  end
  if s.bytes == 0 then
    s.first = max
  end
  s.bytes = s.bytes + e.bytes
  s.max = math.max(s.max, max)
  s.modified = now

  largest = math.max(largest, max)
  largest_entry = math.max(largest_entry, e.bytes)
  appended_bytes = appended_bytes + e.bytes
  index_bytes = index_bytes + e.bytes
  if index_bytes >= settings.index_interval_bytes and largest > index_timestamp then
    redis.call('ZADD', times, int(largest), int(last))
    index_bytes, index_timestamp = 0, largest
  end
  p.log_end = last + 1
end

if has_state then
  redis.call('HSET', producers, producer_id, string.format('%d %d|%d %d %d %d', epoch, now,
    first_sequence, last_sequence, base_offset, append_time)
    .. (is_any and ' k' or checksum ~= '' and ' ' .. checksum or '') .. calls)
end
if is_new then
  producer_count = producer_count + 1
  -- Each new producer looks at a few others and removes expired ones. So the hash stays about as
  -- large as the number of live producers, and no append ever walks all of it.
  for _, other in ipairs(redis.call('HRANDFIELD', producers, 4)) do
    local last_ms = tonumber(string.match(redis.call('HGET', producers, other), '^%d+ (%d+)') or '')
    -- nil: foreign; an error here would come after the writes
    if last_ms and now - last_ms >= settings.producer_expiration_ms then
      producer_count = producer_count - redis.call('HDEL', producers, other)
    end
  end
end

local changes = { 'log_end', int(p.log_end),
  'index', string.format('%d %d %d', index_bytes, index_timestamp, largest),
  'appended', string.format('%d %d', appended_records, appended_bytes) }
local function changed(field, before, value)
  if tonumber(before) ~= value then -- most appends change none of these
    changes[#changes + 1] = field
    changes[#changes + 1] = int(value)
  end
end
-- Without a closed segment, and with no bound but that of time, nothing can go.
local trim = not settings.tiered and (p.closed_bytes > 0 or settings.retention_bytes >= 0
  or settings.retention_entries >= 0) and retained(false)
if trim then
  changed('log_start', st[8], p.log_start)
  changed('local_log_start', st[9], math.max(tonumber(st[9]), p.log_start))
end
if checked then
  changed('retention_checked', nil, checked)
end
changes[#changes + 1] = 'segment'
changes[#changes + 1] = format_segment(p.segment)
changed('closed_bytes', st[13], p.closed_bytes)
if settings.is_rate_limited then
  changes[#changes + 1] = 'allowance'
  changes[#changes + 1] = format_allowance(allowance)
end
changed('producer_count', st[10], producer_count)
changed('largest_entry', st[15], largest_entry)
changed('unarchived_since', st[11], tonumber(st[11] or now))
if is_any and has_state or checksum ~= '' and first_sequence == 0 then
  changed('checksums', st[21], 1)
end
redis.call('HSET', state, unpack(changes))
if trim then
  trim()
end
return { 'OK', base_offset, append_time, p.log_start, 0 }

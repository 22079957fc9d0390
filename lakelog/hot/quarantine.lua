-- Moves one entry aside, and back. ARGV: verb, topic_id or '', entry id, then by verb:
--
--   look     -                     {'OK', gap start, gap end, log_end, base of the open segment,
--                                   gap texts as stored or '', the entry's fields or false,
--                                   texts of the closed segments that the gap cuts}
--   roll     -                     closes the open segment, so that it can be cut
--   move     gap start, gap end, note, number of segments to replace, their texts, the new texts
--   release  gap start, gap end, text of a segment for the entry
--   forget   -                     drops what was kept of it, once it is back
--   give_up  note                  drops its bytes for good; its gap and the note stay
--
-- KEYS: the five of the partition, then quarantine, rebuilt. `:quarantine` is a hash: `{id}` → a
-- note as JSON, `{id}|{n}` → the n-th name or value of the entry, byte for byte; `|rebuilding` →
-- what `rebuilt` is for.
--
-- The gap: the offsets that the id names and that no other entry holds; start = end: none.
-- If another client changed it since the look, the answer is {'CHANGED'}, and nothing was written.
-- {'MORE'}: the stream has to be written anew, which is done by parts beside it, so that all others who
-- use the server get their turn. Nothing is seen of it; the same call again does the next part.

local quarantine, rebuilt = KEYS[6], KEYS[7]
local COPIED_AT_ONCE = 500 -- entries: a few milliseconds
local REBUILDING = '|rebuilding'
local MAX_OFFSET = 9007199254740992

local verb, id = ARGV[1], ARGV[3]
local st = redis.call('HMGET', state, 'topic_id', 'log_end', 'local_log_start', 'segment', 'gaps',
  'closed_bytes', 'quarantined', 'paused')
if not st[1] or ARGV[2] ~= '' and st[1] ~= ARGV[2] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
local log_end, open = tonumber(st[2]), parse_segment(st[4])
check_types()
redis.call('HLEN', quarantine)
assert(log_end and tonumber(st[3]) and tonumber(st[6]), 'not lakelog\'s numbers')

-- The offsets of an id as [first, end); nil if the id is foreign.
local function offsets_of(text)
  local last, count = string.match(text, '^(%d+)%-(%d+)$')
  last, count = tonumber(last), tonumber(count)
  if count >= 1 and count <= last + 1 and last < MAX_OFFSET then
    return last - count + 1, last + 1
  end
end

local function gaps()
  local found = {}
  for from, to in string.gmatch((st[5] or '') .. ',' .. (st[7] or ''), '(%d+)-(%d+)') do
    found[#found + 1] = { tonumber(from), tonumber(to) }
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  return found
end

-- A list of gaps, without one of them.
local function without_gap(text, own)
  local left = {}
  for part in string.gmatch(text or '', '[^,]+') do
    if part ~= own then
      left[#left + 1] = part
    end
  end
  return table.concat(left, ',')
end

local function gap_left()
  local first, ending = offsets_of(id)
  if not first then
    return 0, 0
  end
  first, ending = math.max(first, tonumber(st[3])), math.min(ending, log_end)
  local before = redis.call('XREVRANGE', stream, '(' .. id, '-', 'COUNT', 1)[1]
  local _, reach = offsets_of(before and before[1] or '0-1')
  if before and reach then
    first = math.max(first, reach)
  end
  local after = redis.call('XRANGE', stream, '(' .. id, '+', 'COUNT', 1)[1]
  local beyond = after and offsets_of(after[1])
  if beyond then
    ending = math.min(ending, beyond)
  end
  for _, gap in ipairs(gaps()) do
    if gap[1] <= first and first < gap[2] then
      first = gap[2]
    end
    if gap[1] > first and gap[1] < ending then
      ending = gap[1]
    end
  end
  if first >= ending then
    return 0, 0
  end
  return first, ending
end

local function cut_segments(first, ending)
  local texts, at = {}, int(first)
  while true do
    local page = closed_from(at, 100)
    for _, text in ipairs(page) do
      local s = parse_closed(text)
      if s.base >= ending then
        return texts
      end
      if first < s.ending then
        texts[#texts + 1] = text
      end
      at = '(' .. int(s.base)
    end
    if #page < 100 then
      return texts
    end
  end
end

-- Whether an id is below another. (Doubles are exact for lakelog's, and monotonous for all.)
local function is_below(one, other)
  local first, second = string.match(one, '^(%d+)%-(%d+)$')
  local third, fourth = string.match(other, '^(%d+)%-(%d+)$')
  first, second, third, fourth = tonumber(first), tonumber(second), tonumber(third), tonumber(fourth)
  return first < third or first == third and second < fourth
end

local function stop_rebuilding()
  redis.call('UNLINK', rebuilt)
  redis.call('HDEL', quarantine, REBUILDING)
end

-- Copies a part of the stream to `rebuilt`, without one entry or with one more. Answers MORE until all is
-- there, then OK; CHANGED if somebody else took entries out meanwhile: it begins anew. It is made again
-- because entries can be added only at the end, and after XDEL of the last one, ids below it stay refused.
-- The field `|rebuilding` says what for: who wants the same goes on with it. All scripts here that change
-- entries end it, appends are met at the end, and what was trimmed meanwhile goes when it is put in place.
local function rebuild_part(without, with)
  local purpose = table.concat({ verb, id, st[1], RUN_ID }, ' ')
  if redis.call('HGET', quarantine, REBUILDING) ~= purpose then
    stop_rebuilding()
    redis.call('HSET', quarantine, REBUILDING, purpose)
  end
  local last = redis.call('XREVRANGE', rebuilt, '+', '-', 'COUNT', 1)[1]
  local added = not with or last and not is_below(last[1], id)
  local pages = stream_pages(last and '(' .. last[1] or '-', '+')
  local page
  repeat
    if pages.is_enough(COPIED_AT_ONCE) then
      return 'MORE'
    end
    page = pages.next()
    for _, entry in ipairs(page) do
      if not added and is_below(id, entry[1]) then
        redis.call('XADD', rebuilt, id, unpack(with))
        added = true
      end
      if entry[1] ~= without then
        redis.call('XADD', rebuilt, entry[1], unpack(entry[2]))
      end
    end
  until not page[1]
  if not added then
    redis.call('XADD', rebuilt, id, unpack(with))
  end
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if oldest and with and is_below(id, oldest[1]) then
    redis.call('XTRIM', rebuilt, 'MINID', id)
  elseif oldest then
    redis.call('XTRIM', rebuilt, 'MINID', oldest[1])
  end
  local wanted = redis.call('XLEN', stream) + (with and 1 or 0)
  if without and #redis.call('XRANGE', stream, without, without) > 0 then
    wanted = wanted - 1
  end
  if redis.call('XLEN', rebuilt) ~= wanted then
    stop_rebuilding()
    return 'CHANGED'
  end
  return 'OK'
end

local function put_in_place()
  if redis.call('EXISTS', rebuilt) == 1 then
    redis.call('RENAME', rebuilt, stream)
  else
    redis.call('DEL', stream)
  end
end

local entry = redis.call('XRANGE', stream, id, id)[1]
if verb == 'look' then
  local first, ending = gap_left()
  return { 'OK', first, ending, log_end, open.base, (st[5] or '') .. ',' .. (st[7] or ''), entry and entry[2] or false,
    cut_segments(first, ending) }
end
if verb == 'roll' then
  if open.bytes > 0 then
    close_segment(open, log_end)
    redis.call('HSET', state, 'closed_bytes', int(tonumber(st[6]) + open.bytes),
      'segment', format_segment(new_segment(log_end, server_time(''))))
  end
  return { 'OK' }
end

local first, ending = tonumber(ARGV[4]), tonumber(ARGV[5])
if verb == 'move' then
  local now_first, now_ending = gap_left()
  local replaced, closed_bytes = tonumber(ARGV[7]), tonumber(st[6])
  local found = cut_segments(first, ending)
  if now_first ~= first or now_ending ~= ending or #found ~= replaced
    or ending > first and ending > open.base and open.bytes > 0 or not entry and first == ending then
    return { 'CHANGED' }
  end
  for i, text in ipairs(found) do
    if text ~= ARGV[7 + i] then
      return { 'CHANGED' }
    end
  end
  local last = tonumber(string.match(id, '^%d+'))
  local blocks = entry and last >= log_end -- ids of later appends would be below it
  local made = blocks and rebuild_part(id) or 'OK'
  if made ~= 'OK' then
    return { made }
  end
  -- Copied, declared, taken out, in this order: half of it loses no byte and leaves no hole.
  if entry then
    for i, value in ipairs(entry[2]) do
      redis.call('HSET', quarantine, id .. '|' .. i, value)
    end
    redis.call('HDEL', quarantine, id .. '|' .. #entry[2] + 1) -- left of an entry that was partly forgotten
  end
  redis.call('HSET', quarantine, id, ARGV[6])
  for _, text in ipairs(found) do
    closed_bytes = closed_bytes - parse_closed(text).bytes
  end
  for i = 8 + replaced, #ARGV do
    closed_bytes = closed_bytes + parse_closed(ARGV[i]).bytes
    redis.call('ZADD', segments, int(parse_closed(ARGV[i]).base), ARGV[i])
  end
  if ending > first then
    local own = int(first) .. '-' .. int(ending)
    redis.call('HSET', state, 'closed_bytes', int(closed_bytes),
      'quarantined', (st[7] and st[7] ~= '' and st[7] .. ',' or '') .. own)
  end
  if entry and blocks then
    put_in_place()
  elseif entry then
    redis.call('XDEL', stream, id)
  end
  stop_rebuilding()
  redis.call('ZREM', times, int(last))
  for _, text in ipairs(found) do
    redis.call('ZREM', segments, text)
  end
  return { 'OK' }
end

local own = int(first or 0) .. '-' .. int(ending or 0)
if verb == 'forget' then
  redis.call('HDEL', quarantine, id) -- first: without it, the rest is ignored
  local at = 1
  while redis.call('HDEL', quarantine, id .. '|' .. at) == 1 do
    at = at + 1
  end
  return { 'OK' }
end

if verb == 'give_up' then
  if redis.call('HEXISTS', quarantine, id) == 0 then
    return { 'CHANGED' }
  end
  local kept = 0
  while redis.call('HEXISTS', quarantine, id .. '|' .. kept + 1) == 1 do
    kept = kept + 1
  end
  for at = kept, 1, -1 do -- from the end: half of it leaves the rest where the next run finds it
    redis.call('HDEL', quarantine, id .. '|' .. at)
  end
  redis.call('HSET', quarantine, id, ARGV[4])
  return { 'OK' }
end

-- release
if redis.call('HEXISTS', quarantine, id) == 0 then
  return { 'CHANGED' }
end
local fields = {}
while true do
  local value = redis.call('HGET', quarantine, id .. '|' .. (#fields + 1))
  if not value then
    break
  end
  fields[#fields + 1] = value
end
local was = false
for _, gap in ipairs(gaps()) do
  was = was or gap[1] == first and gap[2] == ending
end
local is_back = entry and #entry[2] == #fields -- by a release that was cut short
for i, value in ipairs(fields) do
  is_back = is_back and entry[2][i] == value
end
if is_back and not was then
  return { 'OK' }
end
local before = redis.call('XREVRANGE', stream, id, '-', 'COUNT', 1)[1]
local _, reach = offsets_of(before and before[1] or '0-1')
if not is_back and (entry or before and reach and reach > first)
  or not was or first < tonumber(st[3]) then
  return { 'CHANGED' }
end
local made = is_back and 'OK' or rebuild_part(nil, fields)
if made ~= 'OK' then
  return { made }
end
if not is_back then
  put_in_place()
end
redis.call('ZADD', segments, int(first), ARGV[6])
redis.call('HSET', state, 'gaps', without_gap(st[5], own), 'quarantined', without_gap(st[7], own),
  'closed_bytes', int(tonumber(st[6]) + parse_closed(ARGV[6]).bytes))
redis.call('HSETNX', state, 'unarchived_since', int(server_time('')))
stop_rebuilding()
return { 'OK' }

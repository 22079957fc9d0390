-- Takes one entry out of the log and declares its offsets a gap. ARGV: verb, topic_id or '', entry id, then
-- by verb:
--
--   look     -                     {'OK', gap start, gap end, log_end, base of the open segment,
--                                   gap texts as stored or '', the entry's fields or false,
--                                   texts of the closed segments that the gap cuts}
--   roll     -                     closes the open segment, so that it can be cut
--   skip     gap start, gap end, SHA-1 of the entry's fields or '' without one, note,
--            number of segments to replace, their texts, the new texts
--   note     note                  what is kept of a file of the table that was skipped; its path is the id
--
-- KEYS: the five of the partition, then quarantine, rebuilt. `:quarantine` is a hash: `{id}` or `{path}` → a
-- note as JSON; `|rebuilding` → what `rebuilt` is for; `{id}|{n}` → the n-th name or value of an entry that an
-- older version kept here.
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
if verb == 'note' then
  redis.call('HSET', quarantine, id, ARGV[4])
  return { 'OK' }
end

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
  local texts = {}
  for _, text in ipairs(closed_from(int(first), '(' .. int(ending), -1)) do
    if first < parse_closed(text).ending then
      texts[#texts + 1] = text
    end
  end
  return texts
end

local function stop_rebuilding()
  redis.call('UNLINK', rebuilt)
  redis.call('HDEL', quarantine, REBUILDING)
end

-- Copies a part of the stream to `rebuilt`, without the entry. Answers MORE until all is there, then OK;
-- CHANGED if somebody else took entries out meanwhile: it begins anew. It is needed where the entry lies above
-- all others, for after XDEL the ids below it stay refused. The field `|rebuilding` says what for: who skips
-- the same entry goes on with it. Appends are met at the end, and what was trimmed meanwhile goes when it is
-- put in place.
local function rebuild_part()
  local purpose = table.concat({ verb, id, st[1], RUN_ID }, ' ')
  if redis.call('HGET', quarantine, REBUILDING) ~= purpose then
    stop_rebuilding()
    redis.call('HSET', quarantine, REBUILDING, purpose)
  end
  local last = redis.call('XREVRANGE', rebuilt, '+', '-', 'COUNT', 1)[1]
  local pages = stream_pages(last and '(' .. last[1] or '-', '+')
  local page
  repeat
    if pages.is_enough(COPIED_AT_ONCE) then
      return 'MORE'
    end
    page = pages.next()
    for _, entry in ipairs(page) do
      if entry[1] ~= id then
        redis.call('XADD', rebuilt, entry[1], unpack(entry[2]))
      end
    end
  until not page[1]
  redis.call('XTRIM', rebuilt, 'MINID', redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1][1])
  if redis.call('XLEN', rebuilt) ~= redis.call('XLEN', stream) - 1 then
    stop_rebuilding()
    return 'CHANGED'
  end
  return 'OK'
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

-- skip
local first, ending, replaced = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[8])
local now_first, now_ending = gap_left()
local found = cut_segments(first, ending)
local seen = entry and redis.sha1hex(table.concat(entry[2], '\n')) or ''
if now_first ~= first or now_ending ~= ending or seen ~= ARGV[6] or #found ~= replaced
  or ending > first and ending > open.base and open.bytes > 0 then
  return { 'CHANGED' }
end
for i, text in ipairs(found) do
  if text ~= ARGV[8 + i] then
    return { 'CHANGED' }
  end
end
local last = tonumber(string.match(id, '^%d+'))
local blocks = entry and last >= log_end -- ids of later appends would be below it
local made = blocks and rebuild_part() or 'OK'
if made ~= 'OK' then
  return { made }
end
-- Noted, declared, taken out, in this order: half of it leaves no hole.
redis.call('HSET', quarantine, id, ARGV[7])
local closed_bytes = tonumber(st[6])
for _, text in ipairs(found) do
  closed_bytes = closed_bytes - parse_closed(text).bytes
end
for i = 9 + replaced, #ARGV do
  closed_bytes = closed_bytes + parse_closed(ARGV[i]).bytes
  redis.call('ZADD', segments, int(parse_closed(ARGV[i]).base), ARGV[i])
end
if ending > first then
  local own = int(first) .. '-' .. int(ending)
  redis.call('HSET', state, 'closed_bytes', int(closed_bytes),
    'quarantined', (st[7] and st[7] ~= '' and st[7] .. ',' or '') .. own)
end
if blocks and redis.call('EXISTS', rebuilt) == 1 then
  redis.call('RENAME', rebuilt, stream)
elseif blocks then
  redis.call('DEL', stream)
elseif entry then
  redis.call('XDEL', stream, id)
end
stop_rebuilding()
redis.call('ZREM', times, int(last))
for _, text in ipairs(found) do
  redis.call('ZREM', segments, text)
end
return { 'OK' }

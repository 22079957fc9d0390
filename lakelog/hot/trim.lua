-- Drops records of a partition, by archivers' word or by retention. After run.lua and common.lua.

-- script: trim
-- Drops hot records below an offset and notes how far there is nothing left to archive.
-- ARGV: topic_id or '', before, log_start or '', archived_end or '', planned_at_ms or '',
-- 1 to delete what half a transaction left in gaps above, too.
-- Returns {'OK', local log start}, {'MORE'}, {'UNKNOWN_TOPIC_ID', found or ''} or {'OUT_OF_RANGE',
-- local log start, log end}. MORE: a part was dropped, and all others who use the
-- server get their turn before the next part. Only grows; repeating it changes nothing. An untiered
-- partition is only trimmed with its log start: whoever archived it may not know yet that nobody does
-- any more.

local st = redis.call('HMGET', state, 'topic_id', 'local_log_start', 'log_start', 'log_end',
  'segment', 'closed_bytes', 'unarchived_since', 'run_id', 'settings')
if not st[1] or ARGV[1] ~= '' and st[1] ~= ARGV[1] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
local before, local_log_start = tonumber(ARGV[2]), tonumber(st[2])
assert(tonumber(st[3]) and tonumber(st[4]) and tonumber(st[6]) and tonumber(st[7] or '0'),
  'not lakelog\'s numbers')
if before > tonumber(st[4]) and st[8] == RUN_ID then
  -- The next append would lie below the log start. (A server that lost its tail may hold less
  -- than the cold tier; recover() then goes on above both.)
  return { 'OUT_OF_RANGE', local_log_start, tonumber(st[4]) }
end
if ARGV[3] == '' and not parse_settings(st[9]).tiered then
  return { 'OK', local_log_start }
end
local freed, trim, is_part
local following = tonumber(
  redis.call('ZRANGE', segments, SEGMENTS_AT_ONCE, SEGMENTS_AT_ONCE, 'WITHSCORES')[2])
if following and local_log_start < following and following < before then
  before, is_part = following, true
end
if before >= local_log_start then -- also what an earlier trim left
  freed, trim = trimming(before)
end
if ARGV[3] ~= '' and tonumber(ARGV[3]) > tonumber(st[3]) then
  redis.call('HSET', state, 'log_start', ARGV[3])
end
if trim then
  redis.call('HSET', state, 'local_log_start', int(before),
    'closed_bytes', int(tonumber(st[6]) - freed))
  trim()
  local_log_start = before
end
if is_part or ARGV[6] == '1' and drop_halves(before) then
  return { 'MORE' }
end
-- Below either there is nothing left to archive.
local settled_end = math.max(tonumber(ARGV[4]) or 0, tonumber(ARGV[3]) or 0)
if st[7] then
  if settled_end >= tonumber(st[4]) then
    redis.call('HDEL', state, 'unarchived_since')
  elseif ARGV[5] ~= '' and tonumber(ARGV[5]) > tonumber(st[7]) then
    -- All that was appended by then is archived, so unarchived records came later.
    redis.call('HSET', state, 'unarchived_since', ARGV[5])
  end
end
return { 'OK', local_log_start }

-- script: retain
-- Write-time retention of an untiered topic without a write: for idle topics and a full Redis.
-- ARGV: now_ms or '', 1 if records go by time only when the next check is due. Returns the log start,
-- -1 if there is no such partition, and 1 if more may go: a part did, so call it again.

local st = redis.call('HMGET', state, 'topic_id', 'settings', 'log_end', 'segment', 'log_start',
  'local_log_start', 'closed_bytes', 'retention_checked')
if not st[1] then
  return { -1, 0 }
end
local settings = parse_settings(st[2])
local p = {
  log_end = tonumber(st[3]), segment = parse_segment(st[4]), log_start = tonumber(st[5]),
  closed_bytes = tonumber(st[7]),
}
assert(p.log_end and p.log_start and p.closed_bytes and tonumber(st[6]), 'not lakelog\'s numbers')
local now = server_time(ARGV[1])
local by_time, checked = true, nil
if ARGV[2] == '1' then
  by_time, checked = check_due(st[8], settings, now)
end
local trim, is_cut
if not settings.tiered then
  trim, is_cut = retain(p, settings, now, by_time, 0)
end
if checked and not is_cut then -- else the check by time goes on with the next call
  redis.call('HSET', state, 'retention_checked', int(checked))
end
if trim then
  forget(p, math.max(tonumber(st[6]), p.log_start), trim)
end
return { p.log_start, is_cut and 1 or 0 }

-- script: roll
-- Begins a new segment where retention deleted the open one of a tiered partition, as Kafka does
-- before it deletes its active segment: later records must not get the age of deleted ones.
-- ARGV: topic_id, the log end below which all was deleted, now_ms or ''. Changes nothing when
-- something was appended since, or is still there. Returns 1 if it rolled, else 0.

local st = redis.call('HMGET', state, 'topic_id', 'log_end', 'local_log_start', 'segment',
  'closed_bytes')
if st[1] ~= ARGV[1] or tonumber(st[2]) ~= tonumber(ARGV[2])
  or tonumber(st[3]) ~= tonumber(st[2]) then
  return 0
end
local open = parse_segment(st[4])
if open.bytes == 0 then
  return 0
end
redis.call('HSET', state, 'segment',
  format_segment(new_segment(tonumber(st[2]), server_time(ARGV[3]))))
return 1

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

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

-- Write-time retention of an untiered topic without a write: for idle topics and a full Redis.
-- ARGV: now_ms or ''. Returns the log start.

local st = redis.call('HMGET', state, 'topic_id', 'settings', 'log_end', 'segment', 'log_start',
  'local_log_start', 'closed_bytes')
if not st[1] then
  return -1
end
local settings = parse_settings(st[2])
local p = {
  log_end = tonumber(st[3]), segment = parse_segment(st[4]), log_start = tonumber(st[5]),
  closed_bytes = tonumber(st[7]),
}
assert(p.log_end and p.log_start and p.closed_bytes and tonumber(st[6]), 'not lakelog\'s numbers')
local trim = not settings.tiered and retain(p, settings, server_time(ARGV[1]))
if trim then
  redis.call('HSET', state, 'log_start', int(p.log_start),
    'local_log_start', int(math.max(tonumber(st[6]), p.log_start)),
    'segment', format_segment(p.segment), 'closed_bytes', int(p.closed_bytes))
  trim()
end
return p.log_start

-- One consistent look at a partition: its state, its closed segments from the oldest, and if asked for
-- what its producers with checksums sent last.
-- ARGV: how many calls of each (0, 1, or all), now_ms or ''. The producers come as id, value, id,
-- value …; those that sent nothing for producer.id.expiration.ms are left out.

local found = {
  redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'log_start', 'local_log_start',
    'segment', 'index', 'closed_bytes', 'unarchived_since', 'gaps', 'paused', 'clean',
    'reserved_end', 'quarantined', 'lost_from', 'settings', 'checksums',
    'appended'),
  redis.call('ZRANGE', segments, 0, -1),
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
      found[3][#found[3] + 1] = id
      found[3][#found[3] + 1] = calls > 1 and value or string.match(value, '^[^|]*|[^|]*')
    end
  end
end
return found

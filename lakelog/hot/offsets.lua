-- One consistent look at a partition: its state, some of its closed segments, and if asked for what
-- its producers with checksums sent last.
-- ARGV: how many calls of each (0, 1, or all), now_ms or '', how many of the oldest segments, from
-- which offset on others, how many of these at most (see `closed_from`).
-- Returns state, number of closed segments, the oldest, the others, producers: id, value, id, value …,
-- without those that sent nothing for producer.id.expiration.ms.

local found = {
  redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'log_start', 'local_log_start',
    'segment', 'index', 'closed_bytes', 'unarchived_since', 'gaps', 'paused', 'clean',
    'reserved_end', 'quarantined', 'lost_from', 'settings', 'checksums',
    'appended', 'archived_into'),
  redis.call('ZCARD', segments),
  tonumber(ARGV[3]) > 0 and redis.call('ZRANGE', segments, 0, tonumber(ARGV[3]) - 1) or {},
  closed_from(ARGV[4], tonumber(ARGV[5])),
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
      found[5][#found[5] + 1] = id
      found[5][#found[5] + 1] = calls > 1 and value or string.match(value, '^[^|]*|[^|]*')
    end
  end
end
return found

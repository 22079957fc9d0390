-- One consistent look at a partition: its state, its closed segments from the oldest, and if asked for
-- what its producers with checksums sent last.
-- ARGV: 'calls' or '', now_ms or ''. The producers come as id, value, id, value …; those that sent
-- nothing for producer.id.expiration.ms are left out.

local found = {
  redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'log_start', 'local_log_start',
    'segment', 'index', 'closed_bytes', 'unarchived_since', 'gaps', 'paused', 'clean',
    'reserved_end', 'quarantined', 'lost_from', 'settings', 'checksums'),
  redis.call('ZRANGE', segments, 0, -1),
  {},
}
if ARGV[1] == 'calls' and found[1][17] then
  local lasting_ms = parse_settings(found[1][16]).producer_expiration_ms
  local now = server_time(ARGV[2])
  local known = redis.call('HGETALL', producers)
  for i = 1, #known, 2 do
    local last_ms = tonumber(string.match(known[i + 1], '^%d+ (%d+)') or '')
    if last_ms and now - last_ms < lasting_ms and has_checksum(known[i + 1]) then
      found[3][#found[3] + 1] = known[i]
      found[3][#found[3] + 1] = known[i + 1]
    end
  end
end
return found

-- Writes `:state` anew, and the closed segments that are lacking, from what was read of the stream: where
-- Redis evicted one of the keys, or a hand deleted it. The entries, time index and producers stay.
-- ARGV: topic_id, generation, config_version, settings, now_ms or '', the stream's newest id as it was
-- seen, log_end, log_start, local_log_start, gaps and gaps without an entry ('' if there are none), the
-- open segment's base as it was seen or is to be, then base and end of each closed segment that is lacking.
-- Returns {'OK'}, or {'CHANGED'}: it is no longer as it was seen.
--
-- The partition takes appends only after recover(), which goes past every offset that was given out.
-- Sizes and timestamps of what is added are left to mend.lua: until then retention goes by the time of now.

local st = redis.call('HMGET', state, 'topic_id', 'segment')
local newest = redis.call('XINFO', 'STREAM', stream)
local now = server_time(ARGV[5])
check_types()
local last_id
for i = 1, #newest, 2 do
  if newest[i] == 'last-generated-id' then
    last_id = newest[i + 1]
  end
end
if last_id ~= ARGV[6] or st[1] and (st[1] ~= ARGV[1] or int(parse_segment(st[2]).base) ~= ARGV[12]) then
  return { 'CHANGED' }
end
for i = 13, #ARGV, 2 do
  local s = new_segment(tonumber(ARGV[i]), now)
  close_segment(s, tonumber(ARGV[i + 1]))
end
if st[1] then
  return { 'OK' }
end
redis.call('HSET', state, 'topic_id', ARGV[1], 'generation', ARGV[2], 'config_version', ARGV[3],
  'settings', ARGV[4], 'run_id', '', 'forgotten', RUN_ID, 'log_end', ARGV[7], 'log_start', ARGV[8],
  'local_log_start', ARGV[9], 'segment', format_segment(new_segment(tonumber(ARGV[12]), now)),
  'index', '0 -1 -1', 'closed_bytes', '0', 'producer_count', int(redis.call('HLEN', producers)))
for i, name in ipairs({ 'gaps', 'quarantined' }) do
  if ARGV[9 + i] ~= '' then
    redis.call('HSET', state, name, ARGV[9 + i])
  end
end
return { 'OK' }

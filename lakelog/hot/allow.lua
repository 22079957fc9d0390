-- Notes what a partition may take of the keyspace's quotas; see quota.lua.
-- ARGV: topic_id, then one of
--   'grant', held, version, bytes  it may hold so much, and so much more may be appended
--   'lower', version               it may hold what it holds, and no more
-- Returns the bytes that it holds and the version of what it may hold; -1 and 0 where another creation of
-- the topic has the partition, or none.

local st = redis.call('HMGET', state, 'topic_id', 'log_end', 'local_log_start', 'segment', 'closed_bytes',
  'allowance')
if st[1] ~= ARGV[1] then
  return { -1, 0 }
end
local log_end, local_log_start, closed_bytes = tonumber(st[2]), tonumber(st[3]), tonumber(st[5])
assert(log_end and local_log_start and closed_bytes, 'not lakelog\'s numbers')
local held = held_bytes(closed_bytes, parse_segment(st[4]), local_log_start, log_end)
local a = parse_allowance(st[6])
if ARGV[2] == 'lower' then
  a.held, a.version = held, math.max(a.version + 1, tonumber(ARGV[3]))
else
  if tonumber(ARGV[4]) > a.version then -- else it was recalled since
    a.held, a.version = tonumber(ARGV[3]), tonumber(ARGV[4])
  end
  a.appended = a.appended + tonumber(ARGV[5])
end
redis.call('HSET', state, 'allowance', format_allowance(a))
return { held, a.version }

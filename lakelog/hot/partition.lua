-- How a partition comes and goes, and what is noted of it as a whole. After run.lua and common.lua.

-- script: init
-- Writes a partition's `:state` when its topic is created, or its settings when they changed.
-- ARGV: topic_id, generation, config_version, settings, now_ms or '', run ids (comma separated),
-- where the offsets end that a tiered partition may give out at first, where the log goes on and where
-- it starts (0 and 0, but of a partition that is restored from its table, or that is untiered now), 1 if
-- this Redis may have lost it, gaps below where it goes on ('' if there are none), where the offsets end
-- of one that this Redis never had.
-- KEYS: those of the partition, then those under which partition.lua kept them: they come back.
-- Repeating it changes nothing.
--
-- The run ids are those that the servers had before any client could know of the partition. A server
-- that still has one of them has lost nothing: a partition that is not there never was, and starts at
-- offset 0. Otherwise it may have existed, with records, and been lost. Then it is made without a run
-- id, so that it takes appends only after recover() has gone past every offset that was given out.

local st = redis.call('HMGET', state, 'topic_id', 'generation', 'config_version', 'settings',
  'log_start', 'local_log_start')
local generation, config_version = tonumber(ARGV[2]), tonumber(ARGV[3])
if st[1] and st[1] ~= ARGV[1] and tonumber(st[2]) >= generation then
  return { 'STALE', st[1] } -- the topic was created again since
end
if st[1] == ARGV[1] then
  if tonumber(st[3]) >= config_version then
    return { 'UNCHANGED' }
  end
  local changes = { 'config_version', ARGV[3], 'settings', ARGV[4] }
  local was_tiered = parse_settings(st[4]).tiered
  local is_tiered = parse_settings(ARGV[4]).tiered
  if was_tiered and not is_tiered then -- what only the table holds is deleted
    changes[5] = 'log_start'
    changes[6] = int(math.max(tonumber(st[5]), tonumber(st[6]), tonumber(ARGV[9])))
  end
  if was_tiered ~= is_tiered then -- what was reserved bounds nothing any more
    redis.call('HDEL', state, 'reserved_end', 'retention_checked')
  end
  redis.call('HSET', state, unpack(changes))
  return { 'ALTERED' }
end
local is_foreign = redis.call('EXISTS', stream) == 1
local is_half_back = is_foreign and redis.call('EXISTS', KEYS[8]) == 0
if not st[1] and redis.call('EXISTS', KEYS[9]) == 1 and (is_half_back or not is_foreign) then
  for _, i in ipairs({ 1, 3, 4, 5, 6, 7, 2 }) do
    if redis.call('EXISTS', KEYS[i + 7]) == 1 then
      redis.call('RENAME', KEYS[i + 7], KEYS[i])
      redis.call('PERSIST', KEYS[i])
    end
  end
  redis.call('HSET', state, 'config_version', ARGV[3], 'settings', ARGV[4])
  return { 'RETURNED' }
end
if not st[1] and is_foreign then
  return { 'FOREIGN_KEY', redis.call('TYPE', stream).ok }
end
local is_new = string.find(',' .. ARGV[6] .. ',', ',' .. RUN_ID .. ',', 1, true)
redis.call('DEL', stream, state, segments, times, producers, KEYS[6], KEYS[7])
redis.call('HSET', state, 'topic_id', ARGV[1], 'generation', ARGV[2], 'config_version', ARGV[3],
  'settings', ARGV[4], 'run_id', is_new and RUN_ID or '', 'log_end', ARGV[8], 'log_start', ARGV[9],
  'local_log_start', ARGV[8],
  'segment', format_segment(new_segment(tonumber(ARGV[8]), server_time(ARGV[5]))),
  'index', '0 -1 -1', 'closed_bytes', '0', 'producer_count', '0')
if not is_new then
  redis.call('HSET', state, 'forgotten', RUN_ID)
  if ARGV[10] == '1' then
    redis.call('HSET', state, 'lost_from', ARGV[8])
  end
end
if ARGV[11] ~= '' then
  redis.call('HSET', state, 'quarantined', ARGV[11]) -- no entry says so
end
if parse_settings(ARGV[4]).tiered then
  redis.call('HSET', state, 'reserved_end', is_new and ARGV[12] or ARGV[7])
end
return { 'CREATED' }

-- script: delete
-- Takes a partition away if it still belongs to that creation of the topic. KEYS: those of the
-- partition, then as many to keep them under. ARGV: topic_id, for how many ms to keep them ('0': not at
-- all, '': until they are purged), the config version that was deleted: what came back since has a newer.
--
-- The state goes last, here and on the way back (partition.lua): what a torn append-only file left half
-- done goes on from there.

local st = redis.call('HMGET', state, 'topic_id', 'config_version')
if st[1] ~= ARGV[1] or tonumber(st[2]) > tonumber(ARGV[3]) then
  return 0
end
if ARGV[2] == '0' then
  return redis.call('UNLINK', stream, state, segments, times, producers, KEYS[6], KEYS[7])
end
for _, i in ipairs({ 1, 3, 4, 5, 6, 7, 2 }) do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[i + 7])
    if ARGV[2] ~= '' then
      redis.call('PEXPIRE', KEYS[i + 7], ARGV[2])
    end
  end
end
return 1

-- script: archived_into
-- Says which table the partition's topic is archived into. ARGV: topic_id, what to say of it, 'FORGET', or
-- '' to ask; '1' to say it whatever was said before. Returns {'OK', what is said now or ''} or
-- {'UNKNOWN_TOPIC_ID', found or ''}.

local st = redis.call('HMGET', state, 'topic_id', 'archived_into')
if st[1] ~= ARGV[1] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
if ARGV[2] == 'FORGET' then
  redis.call('HDEL', state, 'archived_into')
  return { 'OK', '' }
end
if ARGV[2] ~= '' and (not st[2] or ARGV[3] == '1') then
  redis.call('HSET', state, 'archived_into', ARGV[2])
  return { 'OK', ARGV[2] }
end
return { 'OK', st[2] or '' }

-- script: allow
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

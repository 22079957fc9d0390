-- Changes the topics of a keyspace: their definitions, its defaults, its tenants. All are fields of one
-- key; see keys.py.

local topics = KEYS[1]

-- The server's time in microseconds, or what follows the time that is in `field`, if that is later. It
-- fails where that is no time.
local function time_after(field)
  local before = tonumber(redis.call('HGET', topics, field) or '0')
  assert(before and before < 2 ^ 53, field .. ' is no time')
  local now = redis.call('TIME')
  local now_us = tonumber(now[1]) * 1000000 + tonumber(now[2])
  return string.format('%.0f', math.max(now_us, before + 1))
end

-- A number that is told in `field` is never told again. It is a time, not a count: a server that lost
-- its tail, or everything, would count to the same number again, with other topics behind it.
local function note_change(field)
  redis.call('HSET', topics, field, time_after(field))
end

-- How many topics there are and may be, if there may be no more; else nothing.
local function beyond_quota(defaults)
  local settings = defaults and cjson.decode(defaults).settings or {}
  local limit = tonumber(settings['lakelog.quota.topics'] or '-1')
  if limit < 0 then
    return
  end
  local used = 0
  for _, field in ipairs(redis.call('HKEYS', topics)) do
    if string.sub(field, 1, 1) ~= '#' then
      used = used + 1
    end
  end
  if used >= limit then
    return used, limit
  end
end

-- The time in ms, as text: the one given, or the server's.
local function time_ms(given)
  if given ~= '' then
    return given
  end
  local now = redis.call('TIME')
  return string.format('%.0f', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
end

-- script: define
-- Compare-and-set of one topic's definition. ARGV: name, version to replace (0: the
-- topic must not be there), definition as JSON, topic_id, version of the keyspace's defaults the
-- definition was checked against ('': it says nothing new), an id for the keyspace if it has none.
-- Returns {'OK', created_us, keyspace_id} or {'EXISTS'} | {'MISSING'} | {'CHANGED'} | {'DEFAULTS_CHANGED'},
-- {'TENANT'} or {'QUOTA', topics there are, limit}.
--
-- created_us orders creations under one name (see `generation` in common.lua). It comes from the
-- server's clock, is never below that of the creation before, and fits a double.

local name, version = ARGV[1], tonumber(ARGV[2])
local current = redis.call('HGET', topics, name)
if version == 0 then
  if current then
    return { 'EXISTS' }
  end
  if redis.call('HEXISTS', topics, '#tenant:' .. name) == 1 then
    return { 'TENANT' } -- whose folder the topic's table would lie in
  end
else
  local definition = current and cjson.decode(current)
  if not definition or definition.topic_id ~= ARGV[4] then
    return { 'MISSING' }
  end
  if definition.config_version ~= version then
    return { 'CHANGED' }
  end
end
local defaults = redis.call('HGET', topics, '#defaults')
if version == 0 then
  local used, limit = beyond_quota(defaults)
  if used then
    return { 'QUOTA', used, limit }
  end
end
local created_us = time_after('#created_us') -- before the first write: it may fail
if ARGV[5] ~= '' then
  if (defaults and cjson.decode(defaults).version or 0) ~= tonumber(ARGV[5]) then
    return { 'DEFAULTS_CHANGED' }
  end
  note_change('#changes')
end
redis.call('HSETNX', topics, '#keyspace_id', ARGV[6])
if version > 0 then
  redis.call('HSET', topics, name, ARGV[3])
  return { 'OK' }
end
local text = string.gsub(ARGV[3], '"@created_us@"', created_us)
redis.call('HSET', topics, '#created_us', created_us, name, text)
return { 'OK', created_us, redis.call('HGET', topics, '#keyspace_id') }

-- script: defaults
-- Compare-and-set of the keyspace's defaults. ARGV: the last change that was seen,
-- defaults as JSON.
-- Returns {'OK'} or {'CHANGED'}.
--
-- That is also of every topic, because the defaults were checked against all topics: a new
-- or changed one may contradict them.

if (redis.call('HGET', topics, '#changes') or '0') ~= ARGV[1] then
  return { 'CHANGED' }
end
note_change('#changes')
redis.call('HSET', topics, '#defaults', ARGV[2])
return { 'OK' }

-- script: undefine
-- Takes a topic's definition out and keeps it aside, if it is still that creation's.
-- ARGV: name, topic_id, now_ms or '', the table that it is archived into or ''.
-- Returns when that was, in ms; 0 when it was not there.
-- It works when Redis is full: what comes of it makes room.

local current = redis.call('HGET', topics, ARGV[1])
if not current or cjson.decode(current).topic_id ~= ARGV[2] then
  return '0'
end
local deleted_ms = time_ms(ARGV[3])
redis.call('HDEL', topics, ARGV[1]) -- first: a full Redis takes what follows a removal
redis.call('HSET', topics, '#deleted:' .. ARGV[2], current, '#deleted_ms:' .. ARGV[2], deleted_ms,
  '#deleting:' .. ARGV[1], ARGV[2])
if ARGV[4] ~= '' then
  redis.call('HSET', topics, '#deleted_into:' .. ARGV[2], ARGV[4])
end
note_change('#deletions')
return deleted_ms

-- script: redefine
-- Puts a deleted topic's definition back. ARGV: name, topic_id, its config version then.
-- Returns {'OK'} when it is there, {'EXISTS'} when another topic has the name, {'PURGED'} when it is
-- being removed for good, {'TENANT'} when a tenant has the name, {'MISSING'} when nothing is kept of it,
-- {'QUOTA', topics there are, limit}.

local current = redis.call('HGET', topics, ARGV[1])
if current then
  return { cjson.decode(current).topic_id == ARGV[2] and 'OK' or 'EXISTS' } -- it is back already
end
if redis.call('HEXISTS', topics, '#tenant:' .. ARGV[1]) == 1 then
  return { 'TENANT' } -- whose folder the topic's table would lie in
end
local kept = redis.call('HGET', topics, '#deleted:' .. ARGV[2])
if not kept then
  return { 'MISSING' }
end
if redis.call('HEXISTS', topics, '#purged_ms:' .. ARGV[2]) == 1 then
  return { 'PURGED' }
end
local used, limit = beyond_quota(redis.call('HGET', topics, '#defaults'))
if used then
  return { 'QUOTA', used, limit }
end
local definition = string.gsub(kept, '"config_version": %d+', '"config_version": ' .. ARGV[3], 1)
note_change('#changes') -- first: it refuses what is no number
redis.call('HSET', topics, ARGV[1], definition)
redis.call('HDEL', topics, '#deleted:' .. ARGV[2], '#deleted_ms:' .. ARGV[2],
  '#deleted_into:' .. ARGV[2])
return { 'OK' }

-- script: restore
-- Puts back the definition of a topic that Redis has lost. ARGV: name, topic_id,
-- definition as JSON, keyspace_id, the keyspace's defaults as JSON or '', generation, config version
-- that the table says, '1' where it is one topic more (not one that was there before).
-- Returns {'OK'} when it is there, {'EXISTS'} when another topic has the name, {'IN_USE', names…} when
-- the keyspace is another one with topics of its own, {'TENANT'} when a tenant has the name,
-- {'QUOTA', topics there are, limit}.
--
-- The config version becomes larger than the table's, so that the next change reaches the table.

local current = redis.call('HGET', topics, ARGV[1])
if current then
  return { cjson.decode(current).topic_id == ARGV[2] and 'OK' or 'EXISTS' }
end
if redis.call('HEXISTS', topics, '#tenant:' .. ARGV[1]) == 1 then
  return { 'TENANT' } -- whose folder the topic's table would lie in
end
local keyspace_id = redis.call('HGET', topics, '#keyspace_id')
if keyspace_id and keyspace_id ~= ARGV[4] then
  local used = { 'IN_USE' }
  for _, name in ipairs(redis.call('HKEYS', topics)) do
    if string.sub(name, 1, 1) ~= '#' then
      used[#used + 1] = name
    end
  end
  if used[2] then
    return used
  end
end
if ARGV[8] == '1' then
  local used, limit = beyond_quota(redis.call('HGET', topics, '#defaults'))
  if used then
    return { 'QUOTA', used, limit }
  end
end
local created = tonumber(redis.call('HGET', topics, '#created_us') or '0')
assert(created and created < 2 ^ 53, '#created_us is no time') -- before the first write
local defaults = redis.call('HGET', topics, '#defaults')
local under = cjson.decode(defaults or ARGV[5] ~= '' and ARGV[5] or '{}').version or 0
note_change('#changes')
if not defaults and ARGV[5] ~= '' then
  redis.call('HSET', topics, '#defaults', ARGV[5])
end
local own = string.format('%.0f', math.max(1, tonumber(ARGV[7]) + 1 - under))
local definition = string.gsub(ARGV[3], '"config_version": %d+', '"config_version": ' .. own, 1)
redis.call('HSET', topics, '#keyspace_id', ARGV[4], ARGV[1], definition,
  '#created_us', string.format('%.0f', math.max(created, tonumber(ARGV[6]))))
return { 'OK' }

-- script: purge
-- Notes that a deleted topic is removed for good, or that it was. ARGV: topic_id,
-- 'begin' | 'end', now_ms or ''.
-- Returns since when it is removed, in ms; 0 when it is not among the deleted ones.

local purged = '#purged_ms:' .. ARGV[1]
if redis.call('HEXISTS', topics, '#deleted:' .. ARGV[1]) == 0 then
  return '0'
end
if ARGV[2] == 'end' then
  redis.call('HDEL', topics, '#deleted:' .. ARGV[1], '#deleted_ms:' .. ARGV[1],
    '#deleted_into:' .. ARGV[1], purged)
  return '0'
end
redis.call('HSETNX', topics, purged, time_ms(ARGV[3]))
return redis.call('HGET', topics, purged)

-- script: tenant
-- The tenants of a keyspace, fields of its topics. ARGV: verb, name, definition as JSON.
--   create  returns {'OK'}, {'EXISTS'}, or {'TOPIC'} where a topic has the name: their folders would be one
--   delete  returns {'OK'}
--   mark    of the tenant's own topics: that they are a tenant's. Returns {'OK'}

local verb, name = ARGV[1], ARGV[2]
local field = '#tenant:' .. name
if verb == 'mark' then
  redis.call('HSETNX', topics, '#tenant', ARGV[3])
  return { 'OK' }
elseif verb == 'delete' then
  redis.call('HDEL', topics, field)
  return { 'OK' }
end
if redis.call('HEXISTS', topics, name) == 1 then
  return { 'TOPIC' }
end
return { redis.call('HSETNX', topics, field, ARGV[3]) == 1 and 'OK' or 'EXISTS' }

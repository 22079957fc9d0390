-- What is counted against the quotas of a keyspace. KEYS: quotas, `{topics}:quotas`.

local quotas = KEYS[1]

local function int(number)
  return string.format('%.0f', number)
end

-- script: quota
-- The quotas of a keyspace, and what its partitions were allowed of them.
-- The topics are no key of the call: who appends may only read them.
-- ARGV: verb, now_ms or '', and what the verb takes.
--   take    partition, bytes that it holds, version of what it may hold, bytes that may be appended to
--           it, bytes of the call. Returns {'OK', what it may hold, version of that, how much more may be
--           appended}, {'HOT_BYTES', used, limit}, {'RATE', ms to wait, limit}, or {'RECALL'} first
--   recall  1 if also when it was done just now, partitions…: what they hold is to be counted anew.
--           Returns the version of each; nothing if it was done just now
--   settle  then, of all partitions there are: partition, version of the recall, version now, bytes, …
--
-- An append asks only its partition's own state, which is in another slot of a cluster. So a partition is
-- allowed some bytes at a time, and what all are allowed to hold never exceeds the quota. The hash has
--   held             the sum of what partitions may hold
--   held:{partition} of each: that, and its version. A partition takes no allowance that is older than
--                    the one it has, so what was recalled is not given out by a late caller
--   limit            the quota under which all partitions were last counted; another: they must be again
--   recalled_ms      when that was
--   rate             bytes that may be appended now, and when that was so: a token bucket that holds a
--                    second's bytes. Below 0 after a call that is larger than that: it is waited for
--   cold:{topic_id}  bytes of a topic's table, see quota.lua
--   cold             their sum

local topics = string.match(quotas, '^{(.*)}:quotas$')
local HOT, RATE = 'lakelog.quota.hot.bytes', 'lakelog.quota.producer.byte.rate'
local RECALL_INTERVAL_MS = 1000

local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local defaults = redis.call('HGET', topics, '#defaults')
local settings = defaults and cjson.decode(defaults).settings or {}
local limit, rate = tonumber(settings[HOT] or '-1'), tonumber(settings[RATE] or '-1')
local sum = tonumber(redis.call('HGET', quotas, 'held') or '0')

local function of(partition)
  local held, version = string.match(redis.call('HGET', quotas, 'held:' .. partition) or '0 0',
    '^(%d+) (%d+)$')
  return tonumber(held), tonumber(version)
end

local function note(partition, held, version)
  redis.call('HSET', quotas, 'held:' .. partition, int(held) .. ' ' .. int(version), 'held', int(sum))
end

if ARGV[1] == 'recall' then
  local recalled = tonumber(redis.call('HGET', quotas, 'recalled_ms') or '')
  if ARGV[3] ~= '1' and recalled and now >= recalled and now - recalled < RECALL_INTERVAL_MS then
    return {}
  end
  redis.call('HSET', quotas, 'recalled_ms', int(now))
  local versions = {}
  for i = 4, #ARGV do
    local held, version = of(ARGV[i])
    note(ARGV[i], held, version + 1)
    versions[#versions + 1] = version + 1
  end
  return versions
elseif ARGV[1] == 'settle' then
  local there = {}
  for i = 3, #ARGV, 4 do
    local held, version = of(ARGV[i])
    there['held:' .. ARGV[i]] = true
    if version == tonumber(ARGV[i + 1]) then -- else more was taken since
      sum = sum - held + tonumber(ARGV[i + 3])
      note(ARGV[i], tonumber(ARGV[i + 3]), tonumber(ARGV[i + 2]))
    end
  end
  for _, field in ipairs(redis.call('HKEYS', quotas)) do
    if string.find(field, 'held:', 1, true) == 1 and not there[field] then -- its topic was deleted
      sum = sum - of(string.sub(field, 6))
      redis.call('HDEL', quotas, field)
    end
  end
  redis.call('HSET', quotas, 'held', int(sum), 'limit', int(limit))
  return { 'OK' }
end

local partition, bytes = ARGV[3], tonumber(ARGV[7])
local held, version = of(partition)
local allowed = held
if limit >= 0 then
  if redis.call('HGET', quotas, 'limit') ~= int(limit) then
    return { 'RECALL' }
  end
  local needed = tonumber(ARGV[4]) + bytes
  local most = limit - sum + held
  if needed > held then
    if needed > most then
      return { 'HOT_BYTES', int(sum), int(limit) }
    end
    allowed = needed + math.floor((most - needed) / 8)
  end
end
local short, append = bytes - tonumber(ARGV[6]), 0
if rate >= 0 and short > 0 then
  local tokens, at = string.match(redis.call('HGET', quotas, 'rate') or '', '^(%-?%d+) (%d+)$')
  tokens, at = tonumber(tokens or rate), tonumber(at or now)
  tokens = math.min(rate, tokens + math.floor(rate * math.max(0, now - at) / 1000))
  if tokens <= 0 then
    return { 'RATE', int(math.ceil(1000 * (1 - tokens) / math.max(rate, 0.001))), int(rate) }
  end
  append = math.max(short, math.min(tokens, math.floor(rate / 20)))
  redis.call('HSET', quotas, 'rate', int(tokens - append) .. ' ' .. int(now))
end
-- Newer than what the partition has: this hash may have been lost since.
version = math.max(version, tonumber(ARGV[5])) + 1
sum = sum + allowed - held
note(partition, allowed, version)
return { 'OK', int(allowed), int(version), int(append) }

-- script: cold_bytes
-- How large the tables of a keyspace are together, as far as it was told. ARGV: verb, and
--   tell    topic_id, bytes of its table
--   retain  topic_ids…: others' tables are gone
-- Returns the sum. See quota.lua.

local sum = tonumber(redis.call('HGET', quotas, 'cold') or '0')

local function tell(topic_id, bytes)
  local field = 'cold:' .. topic_id
  sum = sum - tonumber(redis.call('HGET', quotas, field) or '0') + bytes
  if bytes > 0 then
    redis.call('HSET', quotas, field, int(bytes))
  else
    redis.call('HDEL', quotas, field)
  end
end

if ARGV[1] == 'tell' then
  tell(ARGV[2], tonumber(ARGV[3]))
else
  local there = {}
  for i = 2, #ARGV do
    there['cold:' .. ARGV[i]] = true
  end
  for _, field in ipairs(redis.call('HKEYS', quotas)) do
    if string.find(field, 'cold:', 1, true) == 1 and not there[field] then
      tell(string.sub(field, 6), 0)
    end
  end
end
redis.call('HSET', quotas, 'cold', int(sum))
return int(sum)

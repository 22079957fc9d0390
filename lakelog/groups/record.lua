-- What was recorded of a keyspace's groups elsewhere. KEYS: recorded. ARGV: verb, then
--   take     the least number, an id. Returns {id, number}: a number above all that were taken. The id
--            is that of the key's creation: the given one, if it was not there
--   confirm  id, number, digest, ms: that number was recorded, unless a later one was. Returns {1 or 0}
--   due      now_ms or '', ms: returns {'1'} if that was not answered for so long, else {''}
-- It lies in the slot of the list of groups, and so is lost with it.

local verb = ARGV[1]
if verb == 'take' then
  local v = redis.call('HMGET', KEYS[1], 'id', 'taken')
  local id = v[1] or ARGV[3]
  local number = math.max(tonumber(v[2] or 0), tonumber(ARGV[2])) + 1
  redis.call('HSET', KEYS[1], 'id', id, 'taken', string.format('%d', number))
  return { id, string.format('%d', number) }
end
if verb == 'confirm' then
  local v = redis.call('HMGET', KEYS[1], 'id', 'recorded')
  if v[1] ~= ARGV[2] or tonumber(v[2] or 0) >= tonumber(ARGV[3]) then
    return { 0 }
  end
  redis.call('HSET', KEYS[1], 'recorded', ARGV[3], 'digest', ARGV[4], 'recorded_ms', ARGV[5])
  return { 1 }
end
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local last = tonumber(redis.call('HGET', KEYS[1], 'expired_ms') or '')
if last and last <= now and now - last < tonumber(ARGV[3]) then
  return { '' }
end
redis.call('HSET', KEYS[1], 'expired_ms', string.format('%d', now))
return { '1' }

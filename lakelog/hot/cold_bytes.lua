-- How large the tables of a keyspace are together, as far as it was told. KEYS: quotas. ARGV: verb, and
--   tell    topic_id, bytes of its table
--   retain  topic_ids…: others' tables are gone
-- Returns the sum. See quota.lua.

local quotas = KEYS[1]
local sum = tonumber(redis.call('HGET', quotas, 'cold') or '0')

local function tell(topic_id, bytes)
  local field = 'cold:' .. topic_id
  sum = sum - tonumber(redis.call('HGET', quotas, field) or '0') + bytes
  if bytes > 0 then
    redis.call('HSET', quotas, field, string.format('%.0f', bytes))
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
redis.call('HSET', quotas, 'cold', string.format('%.0f', sum))
return string.format('%.0f', sum)

-- What the registry's versions are made of. In front of the scripts that change it.

-- A number that is told in `field` is never told again. It is a time, not a count: a server that lost
-- its tail, or everything, would count to the same number again, with other topics behind it.
-- It fails before the first write where the field is no number.
local function note_change(topics, field)
  local before = tonumber(redis.call('HGET', topics, field) or '0')
  assert(before and before < 2 ^ 53, field .. ' is no time')
  local now = redis.call('TIME')
  local now_us = tonumber(now[1]) * 1000000 + tonumber(now[2])
  redis.call('HSET', topics, field, string.format('%.0f', math.max(now_us, before + 1)))
end

-- What the registry's versions are made of. In front of the scripts that change it.

-- The server's time in microseconds, or what follows the time that is in `field`, if that is later. It
-- fails where that is no time.
local function time_after(topics, field)
  local before = tonumber(redis.call('HGET', topics, field) or '0')
  assert(before and before < 2 ^ 53, field .. ' is no time')
  local now = redis.call('TIME')
  local now_us = tonumber(now[1]) * 1000000 + tonumber(now[2])
  return string.format('%.0f', math.max(now_us, before + 1))
end

-- A number that is told in `field` is never told again. It is a time, not a count: a server that lost
-- its tail, or everything, would count to the same number again, with other topics behind it.
local function note_change(topics, field)
  redis.call('HSET', topics, field, time_after(topics, field))
end

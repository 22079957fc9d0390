-- A lock that ends by itself. KEYS: lock. ARGV: verb, token, milliseconds.
--   take   hold it, if nobody does; else returns the holder's token, and the milliseconds it has left
--   keep   have it last so long from now, if the caller holds it still
--   give   end it, if the caller holds it still
-- Returns 1 if that was done, else 0.
-- A script, so that it works when Redis is full.

local verb, token, milliseconds = ARGV[1], ARGV[2], ARGV[3]
if verb == 'take' then
  if redis.call('SET', KEYS[1], token, 'NX', 'PX', milliseconds) then
    return 1
  end
  local holder = redis.call('GET', KEYS[1])
  if holder == token then -- sent again, since the answer was lost
    return 1
  end
  local left = redis.pcall('PTTL', KEYS[1])
  if type(left) ~= 'number' or left < 0 then -- rights of an older lakelog do not let us ask
    left = tonumber(milliseconds)
  end
  return {holder, left}
elseif redis.call('GET', KEYS[1]) ~= token then
  return 0
elseif verb == 'keep' then
  return redis.call('PEXPIRE', KEYS[1], milliseconds)
end
return redis.call('DEL', KEYS[1])

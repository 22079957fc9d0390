-- A lock that ends by itself. KEYS: lock. ARGV: verb, token, milliseconds.
--   take   hold it, if nobody does
--   keep   have it last so long from now, if the caller holds it still
--   give   end it, if the caller holds it still
-- Returns 1 if that was done, else 0.
-- A script, so that it works when Redis is full.

local verb, token, milliseconds = ARGV[1], ARGV[2], ARGV[3]
if verb == 'take' then
  return redis.call('SET', KEYS[1], token, 'NX', 'PX', milliseconds) and 1 or 0
elseif redis.call('GET', KEYS[1]) ~= token then
  return 0
elseif verb == 'keep' then
  return redis.call('PEXPIRE', KEYS[1], milliseconds)
end
return redis.call('DEL', KEYS[1])

-- A lock that ends by itself. KEYS: lock. ARGV: token, milliseconds, or 0 to give it back.
-- Returns 1 if the caller holds it (or held it), else 0.
-- A script, so that it works when Redis is full.

if ARGV[2] ~= '0' then
  return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
end
return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0

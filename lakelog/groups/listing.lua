-- The list of a keyspace's groups. KEYS: groups, a hash of group id → token of the creation that was
-- listed last. ARGV: verb, group_id, token.
--   add     before the group is made
--   remove  after it was removed, unless another creation was listed since
-- Returns 1 if that was done, else 0.

local verb, id, token = ARGV[1], ARGV[2], ARGV[3]
if verb == 'add' then
  redis.call('HSET', KEYS[1], id, token)
  return 1
elseif redis.call('HGET', KEYS[1], id) ~= token then
  return 0
end
return redis.call('HDEL', KEYS[1], id)

-- One look at all of a partition except its entries and time index, even if keys are damaged.
-- Returns the replies of HGETALL state, ZRANGE segments WITHSCORES, HLEN producers and XLEN stream;
-- in place of one that failed, {'ERR', why}.

local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return { 'ERR', reply.err }
  end
  return reply
end

return {
  ask('HGETALL', state), ask('ZRANGE', segments, 0, -1, 'WITHSCORES'), ask('HLEN', producers),
  ask('XLEN', stream),
}

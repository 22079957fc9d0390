-- One look at all of a partition except its entries and time index, even if keys are damaged; of its
-- closed segments a part. ARGV: the score after which these go on or '', about how many.
-- Returns the replies of HGETALL state, ZRANGE segments WITHSCORES, HLEN producers and XLEN stream;
-- in place of one that failed, {'ERR', why}.

local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return { 'ERR', reply.err }
  end
  return reply
end

local most = tonumber(ARGV[2])
local closed = ask('ZRANGE', segments, ARGV[1] == '' and '-inf' or '(' .. ARGV[1], '+inf',
  'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
if #closed == 2 * most then -- all that foreign hands gave the last score belong to this part
  local last = closed[#closed]
  while closed[#closed] == last do
    closed[#closed], closed[#closed - 1] = nil, nil
  end
  for _, value in ipairs(redis.call('ZRANGE', segments, last, last, 'BYSCORE', 'WITHSCORES')) do
    closed[#closed + 1] = value
  end
end
return { ask('HGETALL', state), closed, ask('HLEN', producers), ask('XLEN', stream) }

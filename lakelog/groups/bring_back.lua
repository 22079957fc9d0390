-- Puts committed offsets back that the server has lost. ARGV: now_ms or '', a token if the group is to be
-- made or '', its type, then of each partition its field, offset, the ms of its commit, and the rest.
-- Returns {'OK', '1' or '' for each: whether it was put back} or {'NEW'} (see join.lua).
--
-- What is there stays, unless it was committed earlier. A group that had members is Empty from now on, so
-- that none of its offsets is over at once.

if load() then
  settle()
elseif ARGV[2] == '' then
  return { 'NEW' }
else
  create(ARGV[2])
  g.type = ARGV[3]
end
local reply = { 'OK' }
for i = 4, #ARGV, 4 do
  local there = redis.call('HGET', offsets, ARGV[i])
  local there_ms = there and tonumber(string.match(there, '^%S+ (%S+)'))
  local is_lost = not there or (there_ms and there_ms < tonumber(ARGV[i + 2]))
  if is_lost then
    redis.call('HSET', offsets, ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2] .. ' ' .. ARGV[i + 3])
  end
  reply[#reply + 1] = is_lost and '1' or ''
end
return answer_all(reply)

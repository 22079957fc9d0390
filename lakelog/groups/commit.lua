-- Stores how far a group has come. ARGV: now_ms or '', member_id, instance, generation, a token if the
-- group is to be made or '', then of each partition its field, offset ('': taken back) and the
-- rest of its value.
-- Returns {'OK'}, {'NEW'} (see join.lua) or {an error's code}.
--
-- A generation below 0 is of somebody who is no member: taken while the group has none.

local id, instance, generation, token = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local is_member = generation >= 0 or id ~= '' or instance ~= ''
if not load() then
  if is_member then
    return { 'ILLEGAL_GENERATION' }
  end
  if token == '' then
    return { 'NEW' }
  end
  create(token)
else
  settle()
end
if is_member then
  local why
  if g.kind == CONSUMER then
    why = epoch_refusal(id, generation)
  else
    why = refusal(id, instance, generation)
  end
  if not why and g.state == COMPLETING then
    why = 'REBALANCE_IN_PROGRESS'
  end
  if why then
    return answer(why)
  end
  if g.kind == CLASSIC then
    renew(id, member(id).session_ms)
  end
elseif g.state ~= EMPTY then
  return answer('UNKNOWN_MEMBER_ID')
end
for i = 6, #ARGV, 3 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', offsets, ARGV[i])
  else
    redis.call('HSET', offsets, ARGV[i], ARGV[i + 1] .. ' ' .. int(now) .. ' ' .. ARGV[i + 2])
  end
end
return answer('OK')

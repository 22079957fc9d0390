-- What a member does within a generation.
--
-- ARGV: now_ms or '', verb, then
--   sync       member_id, instance, generation, type, protocol, then of the leader of each member its id
--              and assignment. Returns {'SYNCED', type, protocol, assignment} or {'PENDING', version, ms}
--   heartbeat  member_id, instance, generation. Returns {'OK', version}
--   leave      of each that leaves its id and instance. Returns the code of each: {'OK', …}
-- or {an error's code}.

local verb, id, instance = ARGV[2], ARGV[3], ARGV[4]
if not load() then
  return verb == 'leave' and { 'NO_GROUP' } or { 'UNKNOWN_MEMBER_ID' }
end
settle()

if verb == 'leave' then
  local codes, left = {}, false
  for i = 3, #ARGV, 2 do
    local leaving, of = ARGV[i], ARGV[i + 1]
    if leaving == '' and of ~= '' then
      leaving = redis.call('HGET', group, 'i:' .. of) or ''
    end
    local why = refusal(leaving, of)
    if redis.call('ZREM', pending, leaving) == 1 then
      why = nil
    elseif not why then
      drop(leaving)
      left = true
    end
    codes[#codes + 1] = why or 'OK'
  end
  if left and g.kind == CONSUMER then
    regroup()
  elseif left and (g.state == STABLE or g.state == COMPLETING) then
    prepare()
  end
  complete()
  return answer_all(codes)
end

local why = refusal(id, instance, tonumber(ARGV[5]))
if g.kind == CONSUMER then
  why = 'UNKNOWN_MEMBER_ID'
end
if why then
  return answer(why)
end
renew(id, member(id).session_ms)

if verb == 'heartbeat' then
  if g.state == PREPARING then
    return answer('REBALANCE_IN_PROGRESS')
  end
  return answer('OK', int(g.version))
end

if ARGV[6] ~= '' and ARGV[6] ~= g.type or ARGV[7] ~= '' and ARGV[7] ~= g.protocol then
  return answer('INCONSISTENT_GROUP_PROTOCOL')
end
if g.state == PREPARING then
  return answer('REBALANCE_IN_PROGRESS')
end
if g.state == COMPLETING then
  arrive(id)
  if id ~= g.leader then
    return answer('PENDING', int(g.version), due_in())
  end
  for i = 8, #ARGV, 2 do
    if redis.call('HEXISTS', members, ARGV[i]) == 1 then
      redis.call('HSET', assignments, ARGV[i], ARGV[i + 1])
    end
  end
  redis.call('DEL', arrived)
  enter(STABLE)
end
return answer('SYNCED', g.type, g.protocol, redis.call('HGET', assignments, id) or '')

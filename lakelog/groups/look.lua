-- What there is of a group. ARGV: now_ms or '', offsets.retention in ms (of offsets), verb, then
--   describe  returns {'GROUP', state, generation, type, protocol, leader, since, version, then of each
--             member its id, instance, client id, host, session ms, its bytes for the protocol that was
--             agreed on, and its assignment}; of kind consumer {'CONSUMERS', the same up to the version,
--             the generation that is assigned, then of each member its id, its record and its target}
--   offsets   of whom, as a member id and its epoch or '' and -1, then the fields asked for, or all.
--             Returns {'OFFSETS', field, value, …}, without those that
--             are over
-- or {'NO_GROUP'}, {an error's code}.

if not load() then
  return { 'NO_GROUP' }
end
settle()
if ARGV[3] == 'describe' and g.kind == CONSUMER then
  local reply = { 'CONSUMERS', g.state, int(g.generation), g.type, g.protocol, g.leader, int(g.since),
    int(g.version), int(g.assigned) }
  return answer_all(add_consumers(reply))
end
if ARGV[3] == 'describe' then
  local reply = { 'GROUP', g.state, int(g.generation), g.type, g.protocol, g.leader, int(g.since),
    int(g.version) }
  each_member(function(id, m)
    local parts = { id, m.instance, m.client, m.host, int(m.session_ms), supports(m, g.protocol) or '',
      redis.call('HGET', assignments, id) or '' }
    for _, part in ipairs(parts) do
      reply[#reply + 1] = part
    end
  end)
  return answer_all(reply)
end
local id, epoch = ARGV[4], tonumber(ARGV[5])
if g.kind == CONSUMER and (id ~= '' or epoch >= 0) then
  local why = epoch_refusal(id, epoch)
  if why then
    return answer(why)
  end
end
local reply = { 'OFFSETS' }
local function add(field, value)
  if value and not is_over(value, tonumber(ARGV[2])) then
    reply[#reply + 1] = field
    reply[#reply + 1] = value
  end
end
if #ARGV > 5 then
  for i = 6, #ARGV do
    add(ARGV[i], redis.call('HGET', offsets, ARGV[i]))
  end
else
  local all = redis.call('HGETALL', offsets)
  for i = 1, #all, 2 do
    add(all[i], all[i + 1])
  end
end
return answer_all(reply)

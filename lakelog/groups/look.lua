-- What there is of a group. ARGV: now_ms or '', offsets.retention in ms, verb, then
--   describe  returns {'GROUP', state, generation, type, protocol, leader, since, version, then of each
--             member its id, instance, client id, host, session ms, its bytes for the protocol that was
--             agreed on, and its assignment}
--   offsets   the fields asked for, or all. Returns {'OFFSETS', field, value, …}, without those that
--             are over
-- or {'NO_GROUP'}.

if not load() then
  return { 'NO_GROUP' }
end
settle()
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
local reply = { 'OFFSETS' }
local function add(field, value)
  if value and not is_over(value, tonumber(ARGV[2])) then
    reply[#reply + 1] = field
    reply[#reply + 1] = value
  end
end
if #ARGV > 3 then
  for i = 4, #ARGV do
    add(ARGV[i], redis.call('HGET', offsets, ARGV[i]))
  end
else
  local all = redis.call('HGETALL', offsets)
  for i = 1, #all, 2 do
    add(all[i], all[i + 1])
  end
end
return answer_all(reply)

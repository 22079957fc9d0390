-- Takes things away. ARGV: now_ms or '', verb, then
--   group    if it has no members. Returns {'OK', token}, {'NON_EMPTY_GROUP'}
--   offsets  version, fields, if nothing has changed since that version
--            Returns {'OK', '1' or '' for each field: whether there was one}
--   expire   version, retention in ms, '1' if the topics that members subscribe to follow, topics
--            Returns {'OK', how many went, token if the group went too or ''}
-- or {'NO_GROUP'}, {'CHANGED'}.

if not load() then
  return { 'NO_GROUP' }
end
settle()
local verb = ARGV[2]
if verb == 'group' then
  if g.state ~= EMPTY or redis.call('ZCARD', pending) > 0 then
    return answer('NON_EMPTY_GROUP')
  end
  return { 'OK', forget() }
end
if int(g.version) ~= ARGV[3] then
  return answer('CHANGED')
end
if verb == 'offsets' then
  local reply = { 'OK' }
  for i = 4, #ARGV do
    reply[#reply + 1] = redis.call('HDEL', offsets, ARGV[i]) == 1 and '1' or ''
  end
  return answer_all(reply)
end

local subscribed = {}
for i = 6, #ARGV do
  subscribed[ARGV[i]] = true
end
local gone, all = 0, redis.call('HGETALL', offsets)
for i = 1, #all, 2 do
  local topic = string.match(all[i], '^(.*)-%d+$')
  if is_over(all[i + 1], tonumber(ARGV[4]), ARGV[5] == '1' and not subscribed[topic]) then
    redis.call('HDEL', offsets, all[i])
    gone = gone + 1
  end
end
if g.state == EMPTY and redis.call('HLEN', offsets) == 0 and redis.call('ZCARD', pending) == 0 then
  return { 'OK', int(gone), forget() }
end
return answer('OK', int(gone), '')

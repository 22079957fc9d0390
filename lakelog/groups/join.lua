-- A member joins, or asks whether its round has ended.
--
-- ARGV: now_ms or '', verb (join, await), member_id or '', instance or '', client_id, host, type,
-- session_ms, rebalance_ms, '1' if an id has to be given out first, an id to give out, a token if the
-- group is to be made or '', initial_delay_ms, max_size, how many of its first bytes tell what a member
-- asks for (0: all; the rest is what it had), then of each protocol its name and bytes.
-- Returns one of
--   {'JOINED', generation, type, protocol, leader, member_id, '1' if it has no need to assign, then for
--             the leader of each member its id, instance and bytes}
--   {'PENDING', version, ms until something is due, member_id}
--   {'NEW'}                    there is no group yet: list it, then call again with a token
--   {'MEMBER_ID_REQUIRED', id}
--   {an error's code}

local verb, id, instance = ARGV[2], ARGV[3], ARGV[4]
local session_ms, rebalance_ms = tonumber(ARGV[8]), tonumber(ARGV[9])
local must_know, new_id, token = ARGV[10] == '1', ARGV[11], ARGV[12]
local initial_delay_ms, max_size, asked_bytes = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])

local function joined(of, has_nothing_to_do)
  local reply = { 'JOINED', int(g.generation), g.type, g.protocol, g.leader, of,
    has_nothing_to_do and '1' or '' }
  if of == g.leader then
    each_member(function(other, m)
      reply[#reply + 1] = other
      reply[#reply + 1] = m.instance
      reply[#reply + 1] = supports(m, g.protocol) or ''
    end)
  end
  return answer_all(reply)
end

-- Where the member stands now.
local function standing(of)
  complete()
  if g.state == PREPARING then
    return answer('PENDING', int(g.version), due_in(), of)
  end
  return joined(of)
end

if not load() then
  if verb == 'await' or id ~= '' then
    return { 'UNKNOWN_MEMBER_ID' }
  end
  if token == '' then
    return { 'NEW' }
  end
  create(token)
else
  settle()
end
if g.kind == CONSUMER and g.state ~= EMPTY then
  return answer('CONSUMER_PROTOCOL')
end

if verb == 'await' then
  local why = refusal(id, instance)
  if why then
    return answer(why)
  end
  renew(id, member(id).session_ms)
  if g.state == PREPARING and not redis.call('ZSCORE', arrived, id) then
    return answer('REBALANCE_IN_PROGRESS')
  end
  return standing(id)
end

local m = {
  instance = instance, client = ARGV[5], host = ARGV[6], session_ms = session_ms,
  rebalance_ms = rebalance_ms, protocols = {},
}
for i = 16, #ARGV, 2 do
  m.protocols[#m.protocols + 1] = { ARGV[i], ARGV[i + 1] }
end

local holder = instance ~= '' and redis.call('HGET', group, 'i:' .. instance) or nil
local before_id = id ~= '' and id or holder or ''
local before = before_id ~= '' and member(before_id) or nil

-- All others must support one of its protocols.
local others = redis.call('HLEN', members) - (before and 1 or 0)
if others > 0 then
  local shared = false
  for _, protocol in ipairs(m.protocols) do
    local count = tonumber(redis.call('HGET', group, 'p:' .. protocol[1]) or '0')
    if count - (before and supports(before, protocol[1]) and 1 or 0) == others then
      shared = true
    end
  end
  if g.type ~= ARGV[7] or not shared then
    return answer('INCONSISTENT_GROUP_PROTOCOL')
  end
end

local function replace_record(of)
  if before then
    count_protocols(before, -1)
  end
  if g.kind == CONSUMER then
    become(CLASSIC)
  end
  g.type = ARGV[7]
  put(of, m)
  renew(of, session_ms)
end

local function has_changed()
  if #before.protocols ~= #m.protocols then
    return true
  end
  for i, protocol in ipairs(m.protocols) do
    if before.protocols[i][1] ~= protocol[1] or before.protocols[i][2] ~= protocol[2] then
      return true
    end
  end
  return false
end

local function asks_the_same(was, is)
  if asked_bytes == 0 then
    return was == is
  end
  return string.sub(was, 1, asked_bytes) == string.sub(is, 1, asked_bytes)
end

local function begin_round(of)
  if g.state ~= PREPARING then
    prepare()
  end
  arrive(of)
  return standing(of)
end

local function add(new)
  if redis.call('HLEN', members) >= max_size then
    return answer('GROUP_MAX_SIZE_REACHED')
  end
  local was_empty = g.state == EMPTY
  replace_record(new)
  if was_empty then
    g.leader = new
    prepare(initial_delay_ms)
  elseif g.state == PREPARING and g.not_before > now then
    g.not_before = math.min(now + initial_delay_ms, g.until_ms)
  end
  return begin_round(new)
end

if id == '' then
  if holder then
    -- It started again. Whoever still runs under the old id is fenced.
    local old_assignment = redis.call('HGET', assignments, holder)
    local place = redis.call('ZSCORE', arrived, holder)
    local led = g.leader == holder
    redis.call('HDEL', members, holder)
    redis.call('ZREM', deadlines, holder)
    redis.call('ZREM', arrived, holder)
    redis.call('HDEL', assignments, holder)
    if old_assignment then
      redis.call('HSET', assignments, new_id, old_assignment)
    end
    if place and g.state == PREPARING then
      redis.call('ZADD', arrived, place, new_id)
    end
    if led then
      g.leader = new_id
    end
    local was = supports(before, g.protocol)
    replace_record(new_id)
    g.version = g.version + 1
    local is = supports(m, g.protocol)
    if g.state == STABLE and was and is and asks_the_same(was, is) and elected() == g.protocol then
      return joined(new_id, led)
    end
    return begin_round(new_id)
  end
  if instance == '' and must_know then
    if redis.call('HLEN', members) + redis.call('ZCARD', pending) >= max_size then
      return answer('GROUP_MAX_SIZE_REACHED')
    end
    redis.call('ZADD', pending, int(now + session_ms), new_id)
    return answer('MEMBER_ID_REQUIRED', new_id)
  end
  return add(new_id)
end

if redis.call('ZREM', pending, id) == 1 then
  return add(id)
end
local why = refusal(id, instance)
if why then
  return answer(why)
end
local changed = has_changed()
replace_record(id)
if g.state == PREPARING or changed or g.state == STABLE and g.leader == id then
  return begin_round(id)
end
return joined(id)

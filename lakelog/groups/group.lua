-- What the scripts of one group share. Loaded in front of each of them, after hot/run.lua.
--
-- KEYS, all in one slot: group, members, pending, deadlines, arrived, assignments, offsets, news.
-- ARGV[1]: now_ms, or '' for the server's clock.
--
-- group, a hash:
--   state        Empty | PreparingRebalance | CompletingRebalance | Stable
--   generation   grows with each round of joining; a member of an older one is refused
--   type         of protocol: 'consumer'; '': it never had members, somebody commits by hand
--   protocol     the assignor that the members agreed on
--   leader       the member that assigns
--   since        ms, when it came into this state
--   until        ms, when the round ends for those who did not come
--   not_before   ms, until when the first round waits for more members
--   version      grows with each change that members wait for; the newest id in `news`
--   run          the server's run in which members were seen last
--   token        of this creation; tells its entry in the list of groups from another's
--   kind         'consumer' if its members speak Kafka's consumer protocol (KIP-848), and only then:
--     assigned     the generation whose members the targets are for; one below is to be shared out
--     topics       the mark of the topics that were looked at for that
--     digest       of what of them mattered
--   i:{instance} member id of a static member
--   p:{protocol} how many members support it
-- members        hash: member id → cmsgpack of instance, client id, host, session ms, rebalance ms,
--                and the protocols as pairs of name and bytes; of kind consumer, see `consumer`
-- pending        sorted set: ids given out to clients that have not joined under them, by their end
-- deadlines      sorted set: member id, by the ms at which its session ends
-- arrived        sorted set: who has joined this round, in order; in CompletingRebalance who has synced; of
--                kind consumer, who has to give partitions up, by the ms until when
-- assignments    hash: member id → bytes; of kind consumer, the target: cmsgpack of partitions
-- offsets        hash: topic-partition → `offset ms leader_epoch topic_id metadata`
-- news           stream of one entry, which members block on
--
-- Nothing runs by itself: whatever is due is done by the next call, in `settle`. Only calls look.
--
-- A group without members may change its kind; what it has committed stays. Of kind consumer it is Empty
-- or Stable, its generation is Kafka's group epoch, its protocol the server's assignor, and nobody leads.

local group, members, pending, deadlines, arrived, assignments, offsets, news =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local EMPTY, PREPARING, COMPLETING, STABLE =
  'Empty', 'PreparingRebalance', 'CompletingRebalance', 'Stable'
local CLASSIC, CONSUMER = 'classic', 'consumer'
-- More generations than can pass within what a server may lose of its tail.
local LOST_GENERATIONS = 10000
local INT32_MAX = 2147483647

local function int(number)
  return string.format('%d', number)
end

local now
if ARGV[1] ~= '' then
  now = tonumber(ARGV[1])
else
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local g, told

local function create(token)
  -- Of half a transaction there may be the rest.
  redis.call('DEL', group, members, pending, deadlines, arrived, assignments, offsets, news)
  g = {
    state = EMPTY, generation = 0, type = '', protocol = '', leader = '', since = now,
    until_ms = 0, not_before = 0, version = 0, run = RUN_ID, token = token, kind = CLASSIC,
  }
  told = 0
end

-- Reads the group into `g`; false if there is none.
local function load()
  local v = redis.call('HMGET', group, 'state', 'generation', 'type', 'protocol', 'leader', 'since',
    'until', 'not_before', 'version', 'run', 'token', 'kind', 'assigned', 'topics', 'digest')
  if not v[1] then
    return false
  end
  g = {
    state = v[1], generation = tonumber(v[2]), type = v[3], protocol = v[4], leader = v[5],
    since = tonumber(v[6]), until_ms = tonumber(v[7]), not_before = tonumber(v[8]),
    version = tonumber(v[9]), run = v[10], token = v[11], kind = v[12] or CLASSIC,
    assigned = tonumber(v[13] or ''), topics = v[14], digest = v[15],
  }
  assert(g.generation and g.type and g.protocol and g.leader and g.since and g.until_ms
    and g.not_before and g.version and g.run and g.token
    and (g.kind == CLASSIC or g.assigned and g.topics and g.digest), 'the group is not lakelog\'s')
  redis.call('HLEN', offsets) -- a key of another type must be refused now
  redis.call('HLEN', members)
  redis.call('ZCARD', deadlines)
  told = g.version
  return true
end

local function store()
  redis.call('HSET', group, 'state', g.state, 'generation', int(g.generation), 'type', g.type,
    'protocol', g.protocol, 'leader', g.leader, 'since', int(g.since), 'until', int(g.until_ms),
    'not_before', int(g.not_before), 'version', int(g.version), 'run', g.run, 'token', g.token)
  if g.kind == CONSUMER then
    redis.call('HSET', group, 'kind', CONSUMER, 'assigned', int(g.assigned), 'topics', g.topics,
      'digest', g.digest)
    return -- members of this kind wait for nothing
  end
  if g.state == EMPTY then
    redis.call('DEL', news)
  elseif g.version ~= told then
    redis.call('XADD', news, 'MAXLEN', 1, int(g.version) .. '-1', 'v', '1')
  end
end

local function enter(state)
  g.state, g.since, g.version = state, now, g.version + 1
end

-- The kind of a group without members.
local function become(kind)
  g.kind, g.assigned, g.topics, g.digest = kind, g.generation, '', ''
  redis.call('HDEL', group, 'kind', 'assigned', 'topics', 'digest')
  redis.call('DEL', news)
end

local function next_generation(step)
  g.generation = g.generation + step
  if g.generation > INT32_MAX then
    g.generation = 1
  end
end

-- A member, or nil.
local function member(id)
  local packed = redis.call('HGET', members, id)
  if not packed then
    return nil
  end
  local v = cmsgpack.unpack(packed)
  return {
    instance = v[1], client = v[2], host = v[3], session_ms = v[4], rebalance_ms = v[5],
    protocols = v[6],
  }
end

local function supports(m, name)
  for _, protocol in ipairs(m.protocols) do
    if protocol[1] == name then
      return protocol[2]
    end
  end
end

local function count_protocols(m, by)
  for _, protocol in ipairs(m.protocols) do
    if redis.call('HINCRBY', group, 'p:' .. protocol[1], by) == 0 then
      redis.call('HDEL', group, 'p:' .. protocol[1])
    end
  end
end

local function put(id, m)
  redis.call('HSET', members, id, cmsgpack.pack({
    m.instance, m.client, m.host, m.session_ms, m.rebalance_ms, m.protocols }))
  count_protocols(m, 1)
  if m.instance ~= '' then
    redis.call('HSET', group, 'i:' .. m.instance, id)
  end
end

local function drop(id)
  local m = member(id)
  if m then
    count_protocols(m, -1)
    if m.instance ~= '' and redis.call('HGET', group, 'i:' .. m.instance) == id then
      redis.call('HDEL', group, 'i:' .. m.instance)
    end
  end
  redis.call('HDEL', members, id)
  redis.call('ZREM', deadlines, id)
  redis.call('ZREM', arrived, id)
  redis.call('HDEL', assignments, id)
  if g.leader == id then
    g.leader = ''
  end
end

local function renew(id, session_ms)
  redis.call('ZADD', deadlines, int(now + session_ms), id)
end

local function arrive(id)
  local last = redis.call('ZREVRANGE', arrived, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', arrived, 'NX', last and int(tonumber(last) + 1) or 0, id)
end

-- Calls `act` with each member; returns the longest time that one of them takes to join.
local function each_member(act)
  local longest = 0
  for _, id in ipairs(redis.call('HKEYS', members)) do
    local m = member(id)
    longest = math.max(longest, m.rebalance_ms)
    if act then
      act(id, m)
    end
  end
  return longest
end

-- The protocol that most members prefer of those that all support; the leader's order breaks ties.
local function elected()
  local count = redis.call('HLEN', members)
  local votes = {}
  each_member(function(_, m)
    for _, protocol in ipairs(m.protocols) do
      if tonumber(redis.call('HGET', group, 'p:' .. protocol[1])) == count then
        votes[protocol[1]] = (votes[protocol[1]] or 0) + 1
        break
      end
    end
  end)
  local best
  for _, protocol in ipairs(member(g.leader).protocols) do
    if votes[protocol[1]] and (not best or votes[protocol[1]] > votes[best]) then
      best = protocol[1]
    end
  end
  return best
end

-- A new round: everybody has to join again.
local function prepare(initial_delay_ms)
  redis.call('DEL', arrived, assignments)
  g.until_ms = now + each_member()
  g.not_before = initial_delay_ms and math.min(now + initial_delay_ms, g.until_ms) or 0
  enter(PREPARING)
end

local function everybody_came()
  return redis.call('ZCARD', arrived) == redis.call('HLEN', members)
    and redis.call('ZCARD', pending) == 0
end

-- Ends the round, if all came or its time is over. A static member that did not come stays until its
-- session ends: it may be starting again.
local function complete()
  if g.state ~= PREPARING then
    return
  end
  if redis.call('HLEN', members) > 0 and not (everybody_came() and now >= g.not_before) then
    if now < g.until_ms then
      return
    end
    redis.call('DEL', pending)
    each_member(function(id, m)
      if m.instance == '' and not redis.call('ZSCORE', arrived, id) then
        drop(id)
      end
    end)
  end
  if redis.call('HLEN', members) == 0 then
    next_generation(1)
    g.protocol, g.leader = '', ''
    redis.call('DEL', arrived, assignments)
    return enter(EMPTY)
  end
  local first = redis.call('ZRANGE', arrived, 0, 0)[1]
  if not first then
    g.until_ms = now + each_member()
    return
  end
  if g.leader == '' or not redis.call('ZSCORE', arrived, g.leader) then
    g.leader = first
  end
  next_generation(1)
  g.protocol = elected()
  g.until_ms = now + each_member()
  redis.call('DEL', arrived, assignments)
  enter(COMPLETING)
end

-- A member of kind consumer, or nil. Partitions are texts, `topic id:number:topic`.
--   epoch, previous    in which it is, and was before; AWAY: a static member that is to come back
--   state              STABLE; UNREVOKED: it has to give `revoking` up first; UNRELEASED: others have
--   assigned           what it may read
--   revoking           what it was told to give up and may still read
local AWAY = -2
local MEMBER_STABLE, UNREVOKED, UNRELEASED = 'stable', 'unrevoked', 'unreleased'

local function consumer(id)
  local packed = redis.call('HGET', members, id)
  if not packed then
    return nil
  end
  local v = cmsgpack.unpack(packed)
  return {
    instance = v[1], client = v[2], host = v[3], session_ms = v[4], rebalance_ms = v[5], rack = v[7],
    names = v[8], regex = v[9], assignor = v[10], epoch = v[11], previous = v[12], state = v[13],
    assigned = v[14], revoking = v[15],
  }
end

local function put_consumer(id, m)
  redis.call('HSET', members, id, cmsgpack.pack({ m.instance, m.client, m.host, m.session_ms,
    m.rebalance_ms, {}, m.rack, m.names, m.regex, m.assignor, m.epoch, m.previous, m.state, m.assigned,
    m.revoking }))
  if m.instance ~= '' then
    redis.call('HSET', group, 'i:' .. m.instance, id)
  end
end

-- Adds the id, the record and the target of each member of kind consumer.
local function add_consumers(reply)
  local all = redis.call('HGETALL', members)
  for i = 1, #all, 2 do
    reply[#reply + 1] = all[i]
    reply[#reply + 1] = all[i + 1]
    reply[#reply + 1] = redis.call('HGET', assignments, all[i]) or cmsgpack.pack({})
  end
  return reply
end

-- Members of kind consumer came or went, or ask for something else: all is to be shared out anew.
local function regroup()
  next_generation(1)
  if redis.call('HLEN', members) == 0 then
    g.protocol = ''
    enter(EMPTY)
  elseif g.state == EMPTY then
    enter(STABLE)
  else
    g.version = g.version + 1
  end
end

-- What stands against what such a member commits or asks for in an epoch: an error code, or nil.
local function epoch_refusal(id, epoch)
  local m = consumer(id)
  if not m then
    return 'UNKNOWN_MEMBER_ID'
  end
  return m.epoch ~= epoch and 'STALE_MEMBER_EPOCH' or nil
end

-- Members whose server went on without them, or came back without what it had taken last, may hold
-- generations that it does not know, even where it knows no member at all. Those that it knows keep
-- their ids, and all join again above those generations. What follows from the members is made anew:
-- of a script's writes the server may hold half.
local function take_over()
  g.run = RUN_ID
  for _, field in ipairs(redis.call('HKEYS', group)) do
    if string.match(field, '^[ip]:') then
      redis.call('HDEL', group, field)
    end
  end
  redis.call('DEL', deadlines, arrived, assignments)
  if g.kind == CONSUMER then
    -- They give up what they have, and join under the ids they had.
    redis.call('DEL', members)
    g.topics = ''
  end
  each_member(function(id, m)
    put(id, m)
    renew(id, m.session_ms)
  end)
  next_generation(LOST_GENERATIONS)
  if redis.call('HLEN', members) > 0 then
    prepare()
  elseif g.state ~= EMPTY then
    g.protocol, g.leader = '', ''
    enter(EMPTY)
  end
end

-- Does what is due: ends sessions, and rounds whose time is over.
local function settle()
  if g.run ~= RUN_ID then
    take_over()
  end
  redis.call('ZREMRANGEBYSCORE', pending, '-inf', int(now))
  local over = redis.call('ZRANGEBYSCORE', deadlines, '-inf', int(now))
  if g.kind == CONSUMER then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', arrived, '-inf', int(now))) do
      over[#over + 1] = id
    end
  end
  for _, id in ipairs(over) do
    drop(id)
  end
  if g.kind == CONSUMER then
    return #over > 0 and regroup()
  end
  if #over > 0 and (g.state == STABLE or g.state == COMPLETING) then
    prepare()
  end
  if g.state == COMPLETING and now >= g.until_ms then
    each_member(function(id)
      if not redis.call('ZSCORE', arrived, id) then
        drop(id)
      end
    end)
    prepare()
  end
  complete()
end

-- What stands against what a member asks for: an error code, or nil.
local function refusal(id, instance, generation)
  if instance ~= '' then
    local current = redis.call('HGET', group, 'i:' .. instance)
    if not current then
      return 'UNKNOWN_MEMBER_ID'
    end
    if current ~= id then
      return 'FENCED_INSTANCE_ID'
    end
  end
  if redis.call('HEXISTS', members, id) == 0 then
    return 'UNKNOWN_MEMBER_ID'
  end
  if generation and generation ~= g.generation then
    return 'ILLEGAL_GENERATION'
  end
end

local function answer(...)
  store()
  return { ... }
end

local function answer_all(reply)
  store()
  return reply
end

-- How long until something is due that moves the group on, in ms.
local function due_in()
  local due = g.until_ms
  if g.state == PREPARING and everybody_came() then
    due = math.min(due, g.not_before)
  end
  for _, ends in ipairs({ deadlines, pending }) do
    local first = redis.call('ZRANGE', ends, 0, 0, 'WITHSCORES')[2]
    due = math.min(due, tonumber(first or due))
  end
  return int(math.max(1, due - now))
end

-- Removes all there is of the group; returns its token.
local function forget()
  redis.call('DEL', group, members, pending, deadlines, arrived, assignments, offsets, news)
  return g.token
end

-- Whether an offset has expired: kept for so long after the commit, where the group has members only if
-- none of them subscribes to the topic, and where it had some no less than so long after the last.
local function is_over(value, retention_ms, is_unsubscribed)
  local committed = tonumber(string.match(value, '^%S+ (%S+)'))
  assert(committed, 'an offset is not lakelog\'s')
  if g.state == EMPTY then
    return now - math.max(committed, g.type ~= '' and g.since or 0) >= retention_ms
  end
  return g.state == STABLE and is_unsubscribed and now - committed >= retention_ms
end

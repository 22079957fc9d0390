-- What a member says that speaks Kafka's consumer protocol (KIP-848): it joins, goes on or leaves.
--
-- ARGV: now_ms or '', a token if the group is to be made or '', a `ConsumerHeartbeat` as msgpack,
-- session_ms, max_size, a mark of the topics as the caller saw them last; then, of who has shared the
-- partitions out: by which version of the group, the mark and the digest of the topics that it looked at,
-- the assignor, and of each member its id and its partitions as msgpack.
-- Returns one of
--   {'OK', member epoch, what it may read as msgpack, or '' if it has been told before}
--   {'ASSIGN', version, then of each member its id, record and target}: share out, and call again
--   {'NEW'}                    there is no group yet: list it, then call again with a token
--   {an error's code}
--
-- A partition is given to a member only once no other has it, neither to read nor to give up: who loses
-- one stays in its epoch until its heartbeat says that it is gone, or until its time for that is over.
-- Source: `GroupMetadataManager.consumerGroupHeartbeat` and `CurrentAssignmentBuilder`.

local said = cmsgpack.unpack(ARGV[3])
local id, epoch, instance = said.member_id, said.member_epoch, said.instance_id or ''
local session_ms, max_size, topics = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

if not load() then
  if epoch ~= 0 then
    -- Not GROUP_ID_NOT_FOUND, which ends a client: a server that lost the group has its members back.
    return { 'UNKNOWN_MEMBER_ID' }
  end
  if ARGV[2] == '' then
    return { 'NEW' }
  end
  create(ARGV[2])
else
  settle()
end
if g.state ~= EMPTY and (g.kind ~= CONSUMER or g.type ~= said.protocol_type) then
  return answer('GROUP_ID_NOT_FOUND')
end
local shares_records = said.protocol_type == 'share' -- any number of members may have a partition

local function set_of(list)
  local found = {}
  for _, one in ipairs(list) do
    found[one] = true
  end
  return found
end

-- How many of the partitions it says it owns; a heartbeat names them without their topics.
local function count_owned(partitions)
  local owned, count = set_of(said.owned), 0
  for _, partition in ipairs(partitions) do
    count = count + (owned[string.match(partition, '^%x+:%d+')] and 1 or 0)
  end
  return count
end

-- A heartbeat that does not say what it owns says: as before.
local function owns_any(partitions)
  return said.owned and count_owned(partitions) > 0 or not said.owned and #partitions > 0
end

-- Leaving.
if epoch < 0 then
  local why = refusal(id, instance)
  if why then
    return answer(why)
  end
  if epoch == AWAY then
    local m = consumer(id)
    m.epoch, m.state, m.revoking = AWAY, MEMBER_STABLE, {}
    put_consumer(id, m)
    redis.call('ZREM', arrived, id)
  else
    drop(id)
    regroup()
  end
  return answer('OK', int(epoch), '')
end

-- Who it is.
local m, replaced = consumer(id), nil
if epoch == 0 then
  local holder = instance ~= '' and redis.call('HGET', group, 'i:' .. instance)
  if holder and holder ~= id then
    replaced, m = holder, consumer(holder)
    if m.epoch ~= AWAY then
      return answer('UNRELEASED_INSTANCE_ID')
    end
  elseif not m and redis.call('HLEN', members) >= max_size then
    return answer('GROUP_MAX_SIZE_REACHED')
  end
else
  local why = refusal(id, instance)
  if why then
    return answer(why)
  end
  -- A member whose last answer was lost speaks of the epoch before.
  local is_behind = epoch == m.previous
    and (shares_records or said.owned and count_owned(m.assigned) == #said.owned)
  if epoch > m.epoch or epoch < m.epoch and not is_behind then
    return answer('FENCED_MEMBER_EPOCH')
  end
end

-- What it asks for.
local function asks(of)
  return cmsgpack.pack({ of.names, of.regex, of.assignor })
end

local before = m and asks(m)
m = m or {
  instance = '', rack = '', names = {}, regex = '', assignor = '', epoch = 0, previous = 0,
  state = MEMBER_STABLE, assigned = {}, revoking = {}, rebalance_ms = 0,
}
m.instance = said.instance_id or m.instance
m.rack = said.rack_id or m.rack
m.names, m.regex = said.topics or m.names, said.regex or m.regex
m.assignor = said.assignor or m.assignor
m.rebalance_ms, m.session_ms = said.rebalance_timeout_ms or m.rebalance_ms, session_ms
m.client, m.host = said.client_id, said.client_host
if replaced then
  local target = redis.call('HGET', assignments, replaced)
  drop(replaced)
  if target then
    redis.call('HSET', assignments, id, target)
  end
  g.version = g.version + 1
end
if g.kind ~= CONSUMER then
  become(CONSUMER)
end
g.type = said.protocol_type
put_consumer(id, m)
renew(id, session_ms)
if asks(m) ~= before then
  regroup()
end

-- What was shared out, unless the members have changed since.
local has_looked = ARGV[7] == int(g.version)
if has_looked then
  if ARGV[9] ~= g.digest and g.assigned == g.generation then
    regroup()
  end
  if g.assigned ~= g.generation then
    for i = 11, #ARGV, 2 do
      if redis.call('HEXISTS', members, ARGV[i]) == 1 then
        redis.call('HSET', assignments, ARGV[i], ARGV[i + 1])
      end
    end
    g.assigned, g.protocol, g.version = g.generation, ARGV[10], g.version + 1
  end
  g.topics, g.digest = ARGV[8], ARGV[9]
end
if g.assigned ~= g.generation or not has_looked and g.topics ~= topics then
  return answer_all(add_consumers({ 'ASSIGN', int(g.version) }))
end

-- What others read, or have not given up yet.
local function taken()
  local found, all = {}, shares_records and {} or redis.call('HKEYS', members)
  for _, other in ipairs(all) do
    local o = other ~= id and consumer(other) or { assigned = {}, revoking = {} }
    for _, list in ipairs({ o.assigned, o.revoking }) do
      for _, partition in ipairs(list) do
        found[partition] = true
      end
    end
  end
  return found
end

-- The next step of the member towards its target.
local function reconcile()
  if m.state == UNREVOKED and owns_any(m.revoking) then
    return
  end
  local target = cmsgpack.unpack(redis.call('HGET', assignments, id) or cmsgpack.pack({}))
  local wanted, kept, gone = set_of(target), {}, {}
  for _, partition in ipairs(m.assigned) do
    local list = wanted[partition] and kept or gone
    list[#list + 1] = partition
    wanted[partition] = nil
  end
  if owns_any(gone) and not shares_records then
    m.state, m.assigned, m.revoking = UNREVOKED, kept, gone
    redis.call('ZADD', arrived, int(now + m.rebalance_ms), id)
    return
  end
  local others, is_waiting = next(wanted) and taken() or {}, false
  for _, partition in ipairs(target) do
    if wanted[partition] and others[partition] then
      is_waiting = true
    elseif wanted[partition] then
      kept[#kept + 1] = partition
    end
  end
  if m.epoch ~= g.assigned then
    m.previous, m.epoch = math.max(0, m.epoch), g.assigned
  end
  m.state, m.assigned, m.revoking = is_waiting and UNRELEASED or MEMBER_STABLE, kept, {}
  redis.call('ZREM', arrived, id)
end

local had, had_count = set_of(m.assigned), #m.assigned
if epoch == 0 or m.state ~= MEMBER_STABLE or m.epoch ~= g.assigned then
  reconcile()
  put_consumer(id, m)
end
local is_other = #m.assigned ~= had_count
for _, partition in ipairs(m.assigned) do
  is_other = is_other or not had[partition]
end
local says_all = (said.topics or said.regex)
  and (shares_records or said.rebalance_timeout_ms and said.owned)
if epoch == 0 or says_all or is_other then
  return answer('OK', int(m.epoch), cmsgpack.pack(m.assigned))
end
return answer('OK', int(m.epoch), '')

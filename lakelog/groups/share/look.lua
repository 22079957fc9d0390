-- Where a share group stands in a partition; changes nothing. ARGV: now_ms or '', group, topic_id or ''
-- for that of which there is something.
-- Returns {'OK', now, topic_id, end, log end or '' if the topic is another one by now, then of each range
-- its start, end, state, delivery count, owner, deadline}, or {'NONE'}.

if topic_id == '' then
  local packed = redis.call('HGET', shares, group)
  local v = packed and cmsgpack.unpack(packed)
  topic_id = type(v) == 'table' and type(v[2]) == 'string' and v[2] or ''
end
if not load() then
  return { 'NONE' }
end
local _, log_end = log_of_topic()
local reply = { 'OK', int(now), topic_id, int(share.end_offset), log_end and int(log_end) or '' }
for _, r in ipairs(share.ranges) do
  for _, part in ipairs({ int(r.start), int(r.last), int(r.state), int(r.count), r.owner,
    int(r.deadline) }) do
    reply[#reply + 1] = part
  end
end
return reply

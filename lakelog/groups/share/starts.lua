-- Where each share group begins in a partition: below that all is done with. ARGV: now_ms or '', '', ''.
-- Returns of each its group id, topic id and share-partition start offset. Changes nothing.

local reply = {}
for _, id in ipairs(redis.call('HKEYS', shares)) do
  local v = cmsgpack.unpack(redis.call('HGET', shares, id))
  group, topic_id = id, type(v) == 'table' and v[2] or ''
  assert(load(), 'the share group is not lakelog\'s')
  reply[#reply + 1] = group
  reply[#reply + 1] = topic_id
  reply[#reply + 1] = int(share.ranges[1] and share.ranges[1].start or share.end_offset)
end
return reply

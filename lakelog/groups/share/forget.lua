-- Takes a share group's state in a partition away. ARGV: now_ms or '', group, topic_id or '' for any.
-- Returns 1 if there was one, else 0.

if topic_id ~= '' and not load() then
  return 0
end
return redis.call('HDEL', shares, group)

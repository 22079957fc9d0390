-- Has a share group begin elsewhere in a partition, or takes its state there away, unless somebody holds
-- records. ARGV: now_ms or '', group, topic_id, the offset to begin at or '' to take it away.
-- Returns {'OK', '1' if there was a state of this creation of the topic, else ''}, {'HELD'} or
-- {'UNKNOWN_TOPIC_ID'}.

local _, log_end = log_of_topic()
if not log_end then
  return { 'UNKNOWN_TOPIC_ID' }
end
local was_there = load()
local epoch = 0
if was_there then
  for _, r in ipairs(share.ranges) do
    if r.owner ~= '' and r.deadline > now then
      return { 'HELD' }
    end
  end
  epoch = share.epoch -- whoever held something once must not be taken for who holds it then
end
if ARGV[4] == '' then
  redis.call('HDEL', shares, group)
else
  share = { epoch = epoch, end_offset = math.min(tonumber(ARGV[4]), log_end), ranges = {} }
  store()
end
return { 'OK', was_there and '1' or '' }

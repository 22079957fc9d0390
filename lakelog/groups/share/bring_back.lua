-- Has a share group begin where it was recorded, unless it is there. ARGV: now_ms or '', group, topic_id,
-- its start offset. Returns {'OK', 1 or 0: whether it was put back} or {'UNKNOWN_TOPIC_ID'}.

local _, log_end = log_of_topic()
if not log_end then
  return { 'UNKNOWN_TOPIC_ID' }
end
if load() then
  return { 'OK', 0 }
end
share = { epoch = 0, end_offset = math.min(tonumber(ARGV[4]), log_end), ranges = {} }
store()
return { 'OK', 1 }

-- Says which table the partition's topic is archived into. ARGV: topic_id, what to say of it, 'FORGET', or
-- '' to ask; '1' to say it whatever was said before. Returns {'OK', what is said now or ''} or
-- {'UNKNOWN_TOPIC_ID', found or ''}.

local st = redis.call('HMGET', state, 'topic_id', 'archived_into')
if st[1] ~= ARGV[1] then
  return { 'UNKNOWN_TOPIC_ID', st[1] or '' }
end
if ARGV[2] == 'FORGET' then
  redis.call('HDEL', state, 'archived_into')
  return { 'OK', '' }
end
if ARGV[2] ~= '' and (not st[2] or ARGV[3] == '1') then
  redis.call('HSET', state, 'archived_into', ARGV[2])
  return { 'OK', ARGV[2] }
end
return { 'OK', st[2] or '' }

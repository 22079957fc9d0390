-- Whether a keyspace may have one topic more. In front of the scripts that make one.
-- How many topics there are and may be, if there may be no more; else nothing.
local function beyond_quota(topics, defaults)
  local settings = defaults and cjson.decode(defaults).settings or {}
  local limit = tonumber(settings['lakelog.quota.topics'] or '-1')
  if limit < 0 then
    return
  end
  local used = 0
  for _, field in ipairs(redis.call('HKEYS', topics)) do
    if string.sub(field, 1, 1) ~= '#' then
      used = used + 1
    end
  end
  if used >= limit then
    return used, limit
  end
end

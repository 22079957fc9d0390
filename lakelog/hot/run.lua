-- Which run of the server this is. Loaded in front of all that share it.
--
-- RUN_ID is a constant of this text, which is loaded when a connection is made. So a server process
-- that started later does not know the text. One process can also lose its tail: it is demoted,
-- filled from the server that took over, and promoted again. Its cached scripts survive that; only
-- the replication id shows it (it is not the server's own as long as it never took over).
local REPLICATION = redis.call('INFO', 'replication')
local TOOK_OVER = not string.find(REPLICATION, 'master_replid2:' .. string.rep('0', 40), 1, true)
if (TOOK_OVER and string.match(REPLICATION, 'master_replid:(%x+)') or '') ~= REPLICATION_ID then
  return redis.error_reply('NOSCRIPT the script was loaded before this server took over')
end

-- One consistent look at a partition: its state, and its closed segments from the oldest.

return {
  redis.call('HMGET', state, 'topic_id', 'run_id', 'log_end', 'log_start', 'local_log_start',
    'segment', 'index', 'closed_bytes', 'unarchived_since', 'gaps', 'paused', 'clean',
    'reserved_end', 'quarantined', 'lost_from', 'settings'),
  redis.call('ZRANGE', segments, 0, -1),
}

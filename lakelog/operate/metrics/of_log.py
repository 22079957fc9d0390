"""What is measured of a log, by whoever looks at its tiers."""

from __future__ import annotations

from ...base.metrics import Metric, counter, gauge

_PARTITION = ("topic", "partition")
_GROUP = ("group", "group_type")
_LOG = "kafka.log:type=Log,name="
_BROKER = "kafka.server:type=BrokerTopicMetrics,name="

UP = gauge("lakelog_up", "bool", (), "1 if Redis answered the last look at the log, 0 if not")
LOOK_SECONDS = gauge("lakelog_look_duration_seconds", "seconds", (), "What the last look took")
LAST_ERROR = gauge(
    "lakelog_last_error_info", "bool", ("error",), "1 for the error that the last look ended in"
)
TOPIC_FAILED = gauge(
    "lakelog_topic_failed",
    "bool",
    ("topic", "error"),
    "1 for a topic of which a tier could not be looked at; what that tier says of it is left out",
)

# -- both tiers of a partition -----------------------------------------------------------------

LOG_START = gauge(
    "lakelog_log_start_offset", "offsets", _PARTITION, "The first offset", f"{_LOG}LogStartOffset"
)
LOG_END = gauge(
    "lakelog_log_end_offset",
    "offsets",
    _PARTITION,
    "The offset of the next record",
    f"{_LOG}LogEndOffset",
)
LOCAL_LOG_START = gauge(
    "lakelog_log_local_start_offset", "offsets", _PARTITION, "The first offset that Redis holds"
)
ARCHIVED_END = gauge(
    "lakelog_log_archived_end_offset",
    "offsets",
    _PARTITION,
    "One past the last archived offset; not of untiered topics",
)
RECORDS_IN = counter(
    "lakelog_log_records_in_total",
    "records",
    _PARTITION,
    "Records that were appended, by whatever process; begins anew where Redis was lost",
    f"{_BROKER}MessagesInPerSec",
)
BYTES_IN = counter(
    "lakelog_log_bytes_in_total",
    "bytes",
    _PARTITION,
    "Stored bytes that were appended, likewise",
    f"{_BROKER}BytesInPerSec",
)
HOT_SIZE = gauge(
    "lakelog_log_size_bytes",
    "bytes",
    _PARTITION,
    "Stored bytes that Redis holds; of a segment that is trimmed in part, by its share of the "
    "offsets",
    f"{_LOG}Size",
)
HOT_SEGMENTS = gauge(
    "lakelog_log_segments",
    "segments",
    _PARTITION,
    "Segments that Redis holds, the open one included",
    f"{_LOG}NumLogSegments",
)
RECOVERY_NEEDED = gauge(
    "lakelog_log_recovery_needed",
    "bool",
    _PARTITION,
    "1 if Redis changed since the last append, and nobody has settled what became of its tail",
)
COLD_SIZE = gauge(
    "lakelog_cold_size_bytes",
    "bytes",
    _PARTITION,
    "Bytes of the Parquet files, with records below the log start",
    f"{_BROKER}RemoteLogSizeBytes",
)
COLD_SEGMENTS = gauge("lakelog_cold_segments", "segments", _PARTITION, "Archived segments")
COLD_FILES = gauge("lakelog_cold_files", "files", _PARTITION, "Parquet files")
MOST_FILES = gauge(
    "lakelog_cold_segment_files_max",
    "files",
    _PARTITION,
    "Parquet files of the segment that has the most; optimize makes one of them",
)
LAG_RECORDS = gauge(
    "lakelog_archive_lag_records", "records", _PARTITION, "Records that Redis alone holds"
)
LAG_BYTES = gauge(
    "lakelog_archive_lag_bytes",
    "bytes",
    _PARTITION,
    "Stored bytes that Redis alone holds",
    f"{_BROKER}RemoteCopyLagBytes",
)
LAG_SECONDS = gauge(
    "lakelog_archive_lag_seconds",
    "seconds",
    _PARTITION,
    "How long the oldest unarchived append has waited; 0 if none waits",
)
DIRTY_RATIO = gauge(
    "lakelog_cleaner_dirty_ratio",
    "ratio",
    _PARTITION,
    "Dirty bytes of those that compaction may clean now; only of compacted topics",
    "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
)

# -- the rest ----------------------------------------------------------------------------------

ARCHIVERS = gauge("lakelog_archivers", "archivers", (), "Continuous archivers that are alive")
FAILING_SECONDS = gauge(
    "lakelog_archive_failing_seconds",
    "seconds",
    ("topic",),
    "For how long live archivers have failed at a topic; topic '': at Redis",
)
REDIS_USED = gauge(
    "lakelog_redis_memory_used_bytes", "bytes", ("server",), "Memory that a Redis server uses"
)
REDIS_MAX = gauge(
    "lakelog_redis_memory_max_bytes", "bytes", ("server",), "Its maxmemory; none without a limit"
)
REDIS_HEADROOM = gauge(
    "lakelog_redis_memory_headroom_bytes",
    "bytes",
    ("server",),
    "Bytes until it refuses appends; none without a limit",
)
REDIS_THROTTLE = gauge(
    "lakelog_redis_throttle_seconds",
    "seconds",
    ("server",),
    "For how long producers hold calls back after each answer, as it is nearly full; 0: not at all",
    "kafka.producer:type=producer-metrics,name=produce-throttle-time-max",
)
REDIS_SKEW = gauge(
    "lakelog_redis_clock_skew_seconds",
    "seconds",
    ("server",),
    "By how much its clock is surely ahead of that of the machine that looks; negative: behind",
)
GROUP_MEMBERS = gauge(
    "lakelog_group_members",
    "members",
    ("group",),
    "Members of a group of consumers; one that died counts until the group is called",
)
GROUP_OFFSET = gauge(
    "lakelog_group_committed_offset",
    "offsets",
    (*_GROUP, *_PARTITION),
    "The offset that a group reads next; of a share group, its start offset",
)
GROUP_LAG = gauge(
    "lakelog_group_lag_records",
    "records",
    (*_GROUP, *_PARTITION),
    "Offsets from there to the log end, without those that no record was given",
    "kafka.consumer:type=consumer-fetch-manager-metrics,name=records-lag",
)

#: In the order in which they are shown.
OF_LOG: tuple[Metric, ...] = (
    *(UP, LAST_ERROR, LOOK_SECONDS, TOPIC_FAILED),
    *(LOG_START, LOG_END, LOCAL_LOG_START, ARCHIVED_END, RECORDS_IN, BYTES_IN),
    *(HOT_SIZE, HOT_SEGMENTS, RECOVERY_NEEDED, COLD_SIZE, COLD_SEGMENTS, COLD_FILES, MOST_FILES),
    *(LAG_RECORDS, LAG_BYTES, LAG_SECONDS, DIRTY_RATIO),
    *(ARCHIVERS, FAILING_SECONDS, REDIS_USED, REDIS_MAX, REDIS_HEADROOM),
    *(REDIS_THROTTLE, REDIS_SKEW),
    *(GROUP_MEMBERS, GROUP_OFFSET, GROUP_LAG),
)

"""What a topic will need: Redis's memory, cold storage, machine hours. Arithmetic, no I/O.

| what                   | is                                                                   |
|------------------------|----------------------------------------------------------------------|
| Redis's memory         | records/s · hot bytes a record · (hours kept hot + headroom hours)   |
| cold storage           | records/s · cold bytes a record · retention                          |
| machine hours, always  | 24 a day for each machine that the rate needs                        |
| machine hours, at runs | runs a day · (start of a cluster + what came in since / rate copied) |

Bytes are a topic's own where it has records (`topic_rate`). lakelog's measured figures are in
tests/benchmarks/README.md (`python -m tests.benchmarks`); everything else is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from math import inf

import pyarrow as pa
from msgspec import Struct

from ..base.text_table import counted
from ..errors import InvalidArgumentError
from ..hot import HotLog
from ..hot.server_info import ServerInfo
from ..ingest.answers import throttle_time_ms
from ..read.range_read import DEFAULT_SAMPLE_RECORDS, sample
from ..read.seek import first_timestamp_ms
from ..read.topic_log import TopicLog
from ..values.offsets import HotSegments
from ..values.topic import Topic
from .check.finding import HOT
from .segments import segments

HOUR_S = 3600
DAY_S = 24 * HOUR_S

#: Memory that Redis takes for a stored byte, measured with records of 1 KiB: sent in batches, and
#: one by one.
MEMORY_IN_BATCHES = 1.03
MEMORY_ONE_BY_ONE = 1.13

#: Bytes that Spark archives a second on two cores, measured with records of 1 KiB.
ARCHIVED_BYTES_PER_SECOND = 550_000 * 1024
#: Records that it archives a second, measured with small ones.
ARCHIVED_RECORDS_PER_SECOND = 3_000_000

GIB = 1024**3


class TopicRate(Struct, frozen=True):
    """How many records come in, and what a record takes in either tier."""

    records_per_second: float  # ≥ 0, of all partitions; the mean of the hours that count
    hot_bytes: float  # a record, as it is stored in Redis: key, value, headers, compressed
    cold_bytes: float  # a record, in Parquet

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) >= 0:
                raise InvalidArgumentError(f"{name} is {getattr(self, name)}, but should be ≥ 0")


class Sizing(Struct, frozen=True):
    """What a topic needs; GiB are 2^30 bytes."""

    redis_gib: float  # of Redis's maxmemory, for this topic
    headroom_hours: float  # in which Redis takes records while nothing is archived
    cold_gib: float  # once retention is reached
    archive_machines: int  # of two cores at least, while archiving
    continuous_hours_per_day: float  # machine hours of archiving always
    scheduled_hours_per_day: float  # of archiving now and then

    def __str__(self) -> str:
        return "\n".join(
            (
                f"Redis: {self.redis_gib:,.1f} GiB, {self.headroom_hours:g} hours of it headroom",
                f"cold: {self.cold_gib:,.1f} GiB",
                f"archiving always: {self.continuous_hours_per_day:.1f} machine hours a day",
                f"archiving now and then: {self.scheduled_hours_per_day:.1f} machine hours a day",
            )
        )


def topic_rate(log: TopicLog) -> TopicRate:
    """A topic's own rate, from its smallest known timestamp to its newest.

    Counts all records appended since the log start, even those that compaction removed. Reads a
    sample of the records (their times may be in any order), and what the tables and Redis say of
    segments. A tier without records gets the other tier's bytes.

    Raises:
        InvalidArgumentError: the topic has too few records for a rate.
    """
    offsets = log.offsets()
    records = sum(one.appended_between(one.log_start, one.log_end) for one in offsets.values())
    rows = [
        row
        for row in segments(log)
        if row.end_offset > offsets[row.topic_partition.partition].log_start
    ]
    # A segment that the log start cuts may give the times of deleted records.
    whole = [
        row for row in rows if row.base_offset >= offsets[row.topic_partition.partition].log_start
    ]
    times = [
        *_sampled_times_ms(log),
        *(row.first_timestamp_ms or -1 for row in whole),
        *(row.max_timestamp_ms or -1 for row in whole),
    ]
    known = [time_ms for time_ms in times if time_ms >= 0]
    seconds = (max(known) - min(known)) / 1000 if known else 0.0
    if seconds <= 0:
        raise InvalidArgumentError(
            f"{log.topic.name} has {counted(records, 'record')} of one time or none, "
            "so it has no rate; give a TopicRate of what you expect"
        )
    hot = _bytes_a_record(
        [
            (row.appended_bytes or 0, row.end_offset - row.base_offset)
            for row in rows
            if row.tier == HOT
        ]
    )
    cold = _bytes_a_record([(row.size_bytes, row.records) for row in rows if row.tier != HOT])
    return TopicRate(records / seconds, hot or cold or 0.0, cold or hot or 0.0)


def _sampled_times_ms(log: TopicLog) -> list[int]:
    """The times of each partition's first and last record, and of a sample."""
    tiers = log.tiers(stored_values=True)  # to tell times takes no key
    sampled = sample(tiers, DEFAULT_SAMPLE_RECORDS, 0)
    times_us = sampled["timestamp"].cast(pa.int64()).to_pylist()
    edges = (
        first_timestamp_ms(tiers, log.topic.partition(number), offset)
        for number, held in log.offsets().items()
        for offset in (held.log_start, max(held.log_start, held.log_end - 1))
    )
    return [
        *(time_us // 1000 for time_us in times_us),
        *(time_ms for time_ms in edges if time_ms is not None),
    ]


def sizing(
    rate: TopicRate,
    *,
    local_retention_hours: float,
    headroom_hours: float,
    retention_days: float,
    memory_factor: float = MEMORY_IN_BATCHES,
    archive_every_minutes: float = 15,
    start_minutes: float = 5,
) -> Sizing:
    """What a topic needs.

    Args:
        local_retention_hours: ``local.retention.ms``: how long archived records stay in Redis.
        headroom_hours: how long appends must go on while nothing is archived.
        retention_days: ``retention.ms``.
        memory_factor: Redis's memory for a stored byte.
        archive_every_minutes: how often the scheduled job runs; also the longest that a record
            waits in Redis.
        start_minutes: how long a cluster takes to start; not measured, so look at your workspace.

    Raises:
        InvalidArgumentError: an argument is negative, or there is no time between two runs.
    """
    given = (local_retention_hours, headroom_hours, retention_days, memory_factor, start_minutes)
    if min(given) < 0 or archive_every_minutes <= 0:
        raise InvalidArgumentError(
            "hours, days, minutes and the factor should be ≥ 0, and archive_every_minutes > 0"
        )
    hours = local_retention_hours + archive_every_minutes / 60 + headroom_hours
    a_second = rate.records_per_second * rate.hot_bytes
    work = max(
        a_second / ARCHIVED_BYTES_PER_SECOND,
        rate.records_per_second / ARCHIVED_RECORDS_PER_SECOND,
    )  # seconds of one machine for a second of records
    machines = max(1, math.ceil(work))
    runs = DAY_S / (archive_every_minutes * 60)
    return Sizing(
        redis_gib=a_second * memory_factor * hours * HOUR_S / GIB,
        headroom_hours=headroom_hours,
        cold_gib=rate.records_per_second * rate.cold_bytes * retention_days * DAY_S / GIB,
        archive_machines=machines,
        continuous_hours_per_day=24.0 * machines,
        scheduled_hours_per_day=min(runs * start_minutes / 60 + 24 * work, 24.0) * machines,
    )


def _bytes_a_record(sizes: list[tuple[int, int]]) -> float | None:
    records = sum(count for _, count in sizes)
    return sum(size for size, _ in sizes) / records if records else None


#: The rate is that of so long.
WINDOW_S = HOUR_S

#: A partition that is younger tells no rate: its first call counts as one of this time.
LEAST_S = 60


def bytes_per_second(seen: HotSegments, now_ms: int) -> float:
    """How many stored bytes came in a second, of late.

    Of a segment that reaches back further than `WINDOW_S`, the share counts that lies within. What
    was trimmed since is left out with its time.
    """
    segments = [one for one in seen.segments if one.size_bytes]
    if not segments:
        return 0.0
    since_ms = max(now_ms - 1000 * WINDOW_S, segments[0].created_ms)
    came = 0.0
    for one in segments:
        lasted_ms = one.modified_ms - one.created_ms
        within_ms = one.modified_ms - max(since_ms, one.created_ms)
        if within_ms >= 0:
            came += one.size_bytes * (within_ms / lasted_ms if lasted_ms > 0 else 1.0)
    return 1000 * came / max(now_ms - since_ms, 1000 * LEAST_S)


def headroom_hours(
    servers: Iterable[ServerInfo], rates: Iterable[tuple[str, float]]
) -> Mapping[str, float]:
    """Hours until a server refuses appends, by its name.

    Args:
        rates: the server of each partition, and its stored bytes a second.

    Returns:
        None of servers that have no limit, or to which nothing was appended of late.
    """
    total: dict[str, float] = {}
    for name, rate in rates:
        total[name] = total.get(name, 0.0) + rate
    found = {}
    for server in servers:
        rate = MEMORY_ONE_BY_ONE * total.get(server.name, 0.0)
        if server.memory_headroom_bytes is not None and rate > 0:
            found[server.name] = server.memory_headroom_bytes / rate / HOUR_S
    return found


def high_water_marks(
    hot: HotLog, topics: Iterable[Topic], servers: Iterable[ServerInfo]
) -> dict[str, float]:
    """Of each server, the lowest mark of the tiered topics that have a partition there."""
    tiered = [(one.config.high_water_percent, one) for one in topics if one.config.tiered]
    unmarked = {server.name for server in servers}
    marks: dict[str, float] = {}
    for mark, topic in sorted(tiered, key=lambda one: one[0]):
        if mark == inf or not unmarked:
            break  # all others are no lower
        for name in hot.server_names(topic.topic_partitions()) & unmarked:
            unmarked.remove(name)
            marks[name] = mark
    return marks


def throttle_ms(servers: Iterable[ServerInfo], marks: Mapping[str, float]) -> dict[str, int]:
    """Milliseconds after each small call, of the topic that is held back the longest, by server."""
    return {one.name: throttle_time_ms(one.memory, marks.get(one.name, inf)) for one in servers}

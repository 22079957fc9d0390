"""The rows of ``_lakelog_status``: where each partition stood, and what the run did to it; and how
far groups were behind.

| column               | type      | |
|----------------------|-----------|-|
| run_id, job          | string    | which run wrote it                                            |
| topic, partition     |           | of which partition; see below where they are null             |
| recorded_at          | timestamp | when; the same for all rows of one look                       |
| state                | string    | ok, paused, recovery needed, cold only (Redis was not asked), |
|                      |           | not archived, not shown in the catalog, groups not recorded   |
|                      |           | (see below)                                                   |
| log_start … log_end  | bigint    | offsets; null where Redis alone knows and was not asked       |
| start_offset …       | bigint    | what was archived or cleaned since the run's last rows        |
| records              | bigint    | records archived, or dropped by cleanup; null: nothing        |
| archive_lag_*        | bigint    | what waits in Redis alone; ms null: nothing waits             |
| lost_offsets         | bigint    | offsets skipped after unclean stops of Redis, far more than   |
|                      |           | the records that may be lost; `lakelog status` bounds those   |
| redis_*              | bigint    | of the whole hot tier, the same in all rows; null: no limit   |
| duration_ms          | bigint    | since the run began; `seconds` in tables that an older        |
|                      |           | lakelog made, which keep that column for its rows             |
| done                 | boolean   | the last rows of a run that ended well                        |
| error                | string    | why the run failed; null: it did not                          |
| group_id, group_type | string    | of a group (classic, share), in this partition; null: the row |
|                      |           | is none of a group's                                          |
| group_state          | string    | Empty, Stable, …: Kafka's names                               |
| group_members        | int       | how many; of a share group, those that hold records, and      |
|                      |           | clients of Kafka                                              |
| committed_offset     | bigint    | of a share group, below which all is done with                |
| group_lag_records    | bigint    | that are there and were not read                              |
| group_lag_ms         | bigint    | age of the first of them; null: there is none, or not known   |
| who, what            | string    | who ran it, and with which command or topics                  |
| result               | string    | of the run: running, done, failed or stopped                  |

A topic whose state cannot be told has one row, without a partition and with its error. So does a
topic that a continuous run cannot archive at the moment, with the state ``not archived``; its error
says since when, why, and when the next try is. And so does a topic that was archived, but whose
name or views the catalog lacks, with the state ``not shown in the catalog``. If what groups have
committed cannot be recorded in the cold root, one row of the topic ``_lakelog_groups`` says so,
with the state ``groups not recorded``. A run that failed before it could look, or whose Redis does
not answer, has one row without a topic too.

A group's row is one of a partition, too: whoever asks for partitions says ``group_id IS NULL``. Of
the other columns it has `log_end` alone, besides what all rows of a look have in common. Not every
group has a row at every look; see `run_record.with_rows`.

A row without topic, partition and error says that a run began, goes on, or ended with nothing to
tell of a partition. `lakelog.jobs.history` makes the list of runs of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct

from ..archive.report import ArchiveReport, Trouble
from ..base import compute as pc
from ..cleanup.report import CleanupReport
from ..errors import CorruptRecordError
from ..hot.server_info import ServerInfo
from ..operate.group_lag import GroupLag
from ..operate.status import PartitionStatus, Status
from ..values.topic_partition import TopicPartition

STATUS = pa.schema(
    [
        pa.field("run_id", pa.string()),
        pa.field("job", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("recorded_at", pa.timestamp("us", tz="UTC")),
        pa.field("state", pa.string()),
        pa.field("log_start", pa.int64()),
        pa.field("local_log_start", pa.int64()),
        pa.field("archived_end", pa.int64()),
        pa.field("log_end", pa.int64()),
        pa.field("start_offset", pa.int64()),
        pa.field("end_offset", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("archive_lag_records", pa.int64()),
        pa.field("archive_lag_ms", pa.int64()),
        pa.field("lost_offsets", pa.int64()),
        pa.field("hot_size_bytes", pa.int64()),
        pa.field("cold_size_bytes", pa.int64()),
        pa.field("cold_segments", pa.int32()),
        pa.field("redis_used_bytes", pa.int64()),
        pa.field("redis_max_bytes", pa.int64()),
        pa.field("redis_headroom_bytes", pa.int64()),
        pa.field("duration_ms", pa.int64()),
        pa.field("done", pa.bool_()),
        pa.field("error", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("group_type", pa.string()),
        pa.field("group_state", pa.string()),
        pa.field("group_members", pa.int32()),
        pa.field("committed_offset", pa.int64()),
        pa.field("group_lag_records", pa.int64()),
        pa.field("group_lag_ms", pa.int64()),
        pa.field("who", pa.string()),
        pa.field("what", pa.string()),
        pa.field("result", pa.string()),
        pa.field("redis_headroom_percent", pa.float64()),
        pa.field("redis_headroom_hours", pa.float64()),
    ]
)

#: What an older lakelog called `DURATION`, in seconds.
DURATION, OLD_DURATION = "duration_ms", "seconds"

#: What a table may lack that an older lakelog made; the next rows bring them.
LATER_COLUMNS = (DURATION, *(name for name in STATUS.names[STATUS.names.index("group_id") :]))

#: How far a run came, as its last rows say.
RUNNING, DONE, FAILED, STOPPED = "running", "done", "failed", "stopped"


def unnamed_id() -> str:
    """The id of a run that nobody repeats."""
    return f"unnamed-{uuid4().hex}"


class RunKey(Struct, frozen=True):
    """The run that rows belong to; each run is done once."""

    job: str
    run_id: str  # with what distinguishes the tasks of one run, as in 4711/retain

    @classmethod
    def unnamed(cls, job: str) -> RunKey:
        """Of a run that nobody repeats."""
        return cls(job, unnamed_id())


class RunOf(Struct, frozen=True):
    """Whose run it is, in words."""

    who: str | None = None
    what: str | None = None  # the command, or the job with its topics; no secrets


#: Nothing is known of it.
SOME_RUN = RunOf()


def status_rows(
    key: RunKey,
    status: Status,
    effects: Mapping[TopicPartition, Effect],
    duration_s: float,
    *,
    done: bool = False,
    error: str | None = None,
    troubles: Sequence[Trouble] = (),
    groups: Sequence[GroupLag] = (),
    run: RunOf = SOME_RUN,
    result: str | None = None,
) -> pa.Table:
    """A row for each partition, topic that failed, trouble, and group's partition, as `STATUS`.

    Args:
        result: of the run so far; a run of which nothing else is to be told has a row all the same.
    """
    rows: list[dict[str, Any]] = []
    for one in sorted(status.partitions, key=lambda one: one.topic_partition):
        effect, row = effects.get(one.topic_partition), _partition_row(one)
        if effect is not None:
            row |= {"start_offset": effect.start_offset, "end_offset": effect.end_offset}
            row["records"] = effect.records
        rows.append(row)
    rows += [{"topic": one.topic, "error": str(one.error)} for one in status.failures]
    rows += [
        {"topic": one.topic or None, "state": one.state, "error": str(one)} for one in troubles
    ]
    rows += map(_group_row, groups)
    if not rows and (error is not None or result is not None):
        rows.append({})  # it must be seen all the same
    common: dict[str, Any] = {
        "run_id": key.run_id,
        "job": key.job,
        "recorded_at": status.now_ms * 1000,
        "duration_ms": round(1000 * duration_s),
        "done": done,
        "error": error,
        "who": run.who,
        "what": run.what,
        "result": result,
    }
    if status.servers:
        common |= redis_columns(status.servers, status.headroom_hours)
    columns = [
        pa.array([{**common, **row}.get(field.name) for row in rows], field.type)
        for field in STATUS
    ]
    return pa.Table.from_arrays(columns, schema=STATUS)


def of_groups(rows: pa.Table) -> pa.Table:
    """Those of groups."""
    return rows.filter(pc.is_valid(rows["group_id"]))


def of_partitions(rows: pa.Table) -> pa.Table:
    """Those of partitions, and of what failed: none of groups, and none that only says how far a
    run came.
    """
    named = pc.or_(pc.is_valid(rows["topic"]), pc.is_valid(rows["partition"]))
    told = pc.or_(named, pc.is_valid(rows["error"]))
    return rows.filter(pc.and_(told, pc.is_null(rows["group_id"])))


def _partition_row(one: PartitionStatus) -> dict[str, Any]:
    """What only Redis knows is null if it was not asked."""
    offsets, asked = one.offsets, not one.cold_only
    return {
        "topic": one.topic_partition.topic,
        "partition": one.topic_partition.partition,
        "state": one.state,
        "log_start": offsets.log_start,
        "local_log_start": offsets.local_log_start if asked else None,
        "archived_end": offsets.archived_end if one.tiered else None,
        "log_end": offsets.log_end if asked else None,
        "archive_lag_records": one.unarchived,
        "archive_lag_ms": one.archive_lag_ms,
        "lost_offsets": sum(gap.end_offset - gap.start_offset for gap in one.skipped)
        if asked
        else None,
        "hot_size_bytes": one.hot_size_bytes,
        "cold_size_bytes": one.cold_size_bytes,
        "cold_segments": one.cold_segments,
    }


def redis_columns(servers: Sequence[ServerInfo], hours: Mapping[str, float]) -> dict[str, Any]:
    """The memory of all servers together; the headroom is that of the one with the least."""
    limits = [server.max_memory_bytes for server in servers]
    rooms = [
        (room, 100 * room / server.max_memory_bytes)
        for server in servers
        if (room := server.memory_headroom_bytes) is not None
    ]
    return {
        "redis_used_bytes": sum(server.used_memory_bytes for server in servers),
        "redis_max_bytes": sum(limits) if all(limits) else None,
        "redis_headroom_bytes": min((room for room, _ in rooms), default=None),
        "redis_headroom_percent": min((share for _, share in rooms), default=None),
        "redis_headroom_hours": min(hours.values(), default=None),
    }


def _group_row(one: GroupLag) -> dict[str, Any]:
    return {
        "topic": one.topic_partition.topic,
        "partition": one.topic_partition.partition,
        "log_end": one.log_end,
        "group_id": one.group_id,
        "group_type": one.group_type.value,
        "group_state": one.state.value,
        "group_members": one.members,
        "committed_offset": one.offset,
        "group_lag_records": one.lag_records,
        "group_lag_ms": one.lag_ms,
    }


def check_rows(rows: pa.Table, where: str) -> pa.Table:
    """The rows, if Python can show each one's texts and time.

    Raises:
        CorruptRecordError: a file of the table at `where` is damaged, or somebody else wrote it.
    """
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptRecordError(
            f"a row of {where} is no text ({error}). Put the file that has it back from a backup, "
            "or move the table away: the next run makes a new one",
            path=where,
        ) from error
    times_us = pc.min_max(rows["recorded_at"].cast(pa.int64())).as_py()
    for time_us in times_us.values():
        if time_us is not None and not _EARLIEST_US <= time_us <= _LATEST_US:
            raise CorruptRecordError(
                f"a row of {where} was recorded_at {time_us} µs since 1970, which is no time "
                "between the years 1 and 9999. Put the file that has it back from a backup, or "
                "move the table away: the next run makes a new one",
                path=where,
            )
    return rows


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EARLIEST_US = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(microseconds=1)
_LATEST_US = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(microseconds=1)


# -- what a run did --------------------------------------------------------------------------------


class Appended(Struct, frozen=True):
    """What an ingest run added to a partition."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int  # exclusive
    records: int


Report = ArchiveReport | CleanupReport | Appended


class Effect(Struct, frozen=True):
    """The offsets that a run appended, archived or cleaned, and the number of their records."""

    start_offset: int
    end_offset: int  # exclusive
    records: int

    def __or__(self, other: Effect) -> Effect:
        return Effect(
            min(self.start_offset, other.start_offset),
            max(self.end_offset, other.end_offset),
            self.records + other.records,
        )


def effects_of(reports: Iterable[Report]) -> Mapping[TopicPartition, Effect]:
    """The effect on each partition that was changed."""
    found: dict[TopicPartition, Effect] = {}
    for report in reports:
        for topic_partition, done in _parts(report):
            before = found.get(topic_partition)
            found[topic_partition] = done if before is None else before | done
    return found


def troubles_of(reports: Iterable[Report], beside: Iterable[Trouble]) -> list[Trouble]:
    """What could not be done beside the work, by the newest report of each topic.

    Args:
        beside: those that no report of a topic has.
    """
    newest = {one.topic: one for one in reports if isinstance(one, ArchiveReport)}
    return [*(trouble for report in newest.values() for trouble in report.troubles), *beside]


def _parts(report: Report) -> Iterable[tuple[TopicPartition, Effect]]:
    if isinstance(report, Appended):
        did = Effect(report.start_offset, report.end_offset, report.records)
        yield report.topic_partition, did
        return
    if isinstance(report, ArchiveReport):
        for part in report.partitions:
            yield part.topic_partition, Effect(part.start_offset, part.end_offset, part.records)
        return
    for kept in report.retained:
        yield kept.topic_partition, Effect(kept.log_start_before, kept.log_start, kept.records)
    for one in report.compacted:
        yield one.topic_partition, Effect(0, one.cleaned_end, one.records_dropped)

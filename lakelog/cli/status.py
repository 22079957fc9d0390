"""``lakelog status``: where every partition stands and how Redis is doing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .connect import no_topics, open_archived
from .output import Failed, Message, Page, Table, describe

if TYPE_CHECKING:
    from ..cold_log import ColdLog
    from ..operate.status import Skipped
    from ..values.topic_partition import TopicPartition

_SENTENCES = 3  # about what was skipped

_EPILOG = """\
unarchived: records that Redis alone holds. lag: how long the oldest of them has waited. skipped:
offsets that an unclean stop of Redis left unused, mostly never given to a record; a sentence says
which records may be lost. cold size: Parquet files, in so many segments. A warning is about what
stays until somebody does something, such as a timestamp in the future, from which retention counts.
headroom_hours: until that Redis refuses appends, at the rate of the last hour, if nothing goes.
throttle_ms: for how long producers hold calls back after each answer, as that Redis is nearly full.
clock_skew_ms: by how much its clock is surely ahead of this machine's; negative: behind.
An archiving line is about what a live archiver fails at: since when, why, and when it tries again.
When Redis does not answer, what archivers wrote into _lakelog_status in the last minutes is shown,
with --cold. When a topic cannot be looked at, the others are shown and the exit code is 1.
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "status",
        parents=[common],
        description="Show where every partition stands and how Redis is doing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Page:
    from ..errors import HotTierUnavailableError

    try:
        with open_archived(arguments) as log:
            seen = log.status(arguments.topics or None)
            empty = "" if seen.partitions else no_topics(log)
            disks = list(_disks(log, arguments.dir))
    except HotTierUnavailableError as error:
        told = _told_in_cold(arguments)
        if not told:
            raise
        raise Failed(_without_redis(told, arguments.output), describe(error)) from error
    partitions: list[dict[str, Any]] = [
        {
            "topic": part.topic_partition.topic,
            "partition": part.topic_partition.partition,
            "state": part.state,
            "log_start": part.offsets.log_start,
            "archived_end": part.offsets.archived_end if part.tiered else None,
            "local_log_start": None if part.cold_only else part.offsets.local_log_start,
            "log_end": None if part.cold_only else part.offsets.log_end,
            "unarchived": part.unarchived,
            "lag_ms": part.archive_lag_ms,
            "hot_size_bytes": part.hot_size_bytes,
            "cold_size_bytes": part.cold_size_bytes if part.tiered else None,
            "segments": part.cold_segments if part.tiered else None,
            "skipped": ", ".join(
                f"{one.start_offset}..{one.end_offset - 1}" for one in part.skipped
            )
            or None,
        }
        for part in seen.partitions
    ]
    servers = [
        {
            "redis": server.name,
            "version": f"{server.program} {server.version}",
            "used_bytes": server.used_memory_bytes,
            "max_bytes": server.max_memory_bytes or None,
            "throttle_ms": seen.throttle_ms.get(server.name, 0),
            "headroom_hours": _rounded(seen.headroom_hours.get(server.name)),
            "eviction": server.eviction_policy,
            "append_only_file": server.append_only_file,
            "appendfsync": server.appendfsync,
            "clock_skew_ms": server.clock_skew_ms,
        }
        for server in seen.servers
    ]
    columns = [*partitions[0]] if partitions else ["topic", "state"]
    partitions += [{"topic": failed.topic, "state": "error"} for failed in seen.failures]
    errors = [{"topic": one.topic, "error": describe(one.error)} for one in seen.failures]
    warnings = [
        {
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "warning": one.text,
        }
        for one in seen.warnings
    ]
    from ..operate.status import UNARCHIVED, may_be_lost

    at_most = may_be_lost(seen.servers)
    skipped = [
        {
            "topic": part.topic_partition.topic,
            "partition": part.topic_partition.partition,
            "start_offset": one.start_offset,
            "end_offset": one.end_offset,
            "last_append_ms": one.last_append_ms,
            "recovered_ms": one.recovered_ms,
            "may_be_lost": UNARCHIVED if one.was_lost else at_most,
        }
        for part in seen.partitions
        for one in part.skipped
    ]
    archiving = [
        {**one.to_json(), "topic": one.topic or None, "text": str(one)} for one in seen.troubles
    ]
    parts: dict[str, Any] = {"partitions": Table(partitions, columns, empty=empty)}
    if arguments.output == "json":
        parts |= {
            "errors": Table(errors),
            "warnings": Table(warnings),
            "skipped": Table(skipped),
            "archiving": Table(archiving),
        }
    elif warnings or skipped or archiving:  # sentences, too long for a column
        lines = [f"warning: {row['warning']}" for row in warnings]
        lines += [f"archiving: {row['topic'] or 'Redis'}: {row['text']}" for row in archiving]
        lines += _said(
            [(p.topic_partition, s) for p in seen.partitions for s in p.skipped], at_most
        )
        parts["messages"] = Message("\n".join(lines))
    parts["servers"] = Table(servers)
    if disks:
        parts["disks"] = Table(disks)
    if seen.failures:
        raise Failed(
            Page(parts), "\n".join(f"topic {row['topic']}: {row['error']}" for row in errors)
        )
    return Page(parts)


def _rounded(hours: float | None) -> float | None:
    return None if hours is None else float(f"{hours:.3g}")


def _disks(log: ColdLog, directory: str | None) -> Iterator[dict[str, Any]]:
    """How much room this machine's disk has, where the log is on one."""
    from ..base.local_path import local_path
    from ..hot.embedded.disk import DiskSpace

    folder = local_path(directory, "log's directory") if directory else Path(str(log.place.cold))
    if directory or folder.is_absolute():  # neither a URL nor a name
        space = DiskSpace.of(folder)
        yield {
            "disk": str(folder),
            "free_bytes": space.free_bytes,
            "size_bytes": space.size_bytes,
        }


def _said(skipped: list[tuple[TopicPartition, Skipped]], at_most: str) -> list[str]:
    """A sentence for each of the newest; one stop leaves one in each partition."""
    newest = sorted(skipped, key=lambda pair: pair[1].recovered_ms or 0, reverse=True)[:_SENTENCES]
    lines = [one.sentence(topic_partition, at_most) for topic_partition, one in newest]
    if len(skipped) > len(lines):
        lines.append(f"… and {len(skipped) - len(lines):,} more; --output json has all")
    return lines


def _told_in_cold(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """What archivers recorded beside the tables, for when Redis does not answer."""
    from ..errors import LakelogError
    from ..jobs.trouble_rows import recent_troubles
    from .connect import cold_root

    try:
        root = cold_root(arguments)
        return [] if root is None else recent_troubles(root)
    except LakelogError:  # the error to show is that Redis is away
        return []


def _without_redis(told: list[dict[str, Any]], output: str) -> Page:
    archiving = [
        {"topic": row["topic"], "recorded_at": row["recorded_at"], "text": row["error"]}
        for row in told
    ]
    lines = [
        f"archiving (as written down at {row['recorded_at']:%H:%M:%S} UTC): "
        f"{row['topic'] or 'Redis'}: {row['text']}"
        for row in archiving
    ]
    parts: dict[str, Any] = {"messages": Message("\n".join(lines))}
    return Page(parts | ({"archiving": Table(archiving)} if output == "json" else {}))

"""``lakelog status``, ``history``: where partitions stand, how Redis is doing, and who ran what."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .connect import cold_root, no_topics, open_archived
from .options import Offer, parse_duration
from .output import Failed, Message, Page, Table, describe, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..lakelog import Lakelog
    from ..operate.status import Status

_SENTENCES = 3  # about what was skipped

_STATUS = """\
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

_HISTORY = """\
Notebooks, their jobs and commands leave what they did in the table _lakelog_status of the cold
root, for 30 days. More: `lakelog help the list of runs`.

result  running; done; failed, with its error; stopped (Ctrl-C); died: it left no word for three
        minutes and did not end
records what it archived, appended or dropped; – where it could not say so

examples:
  lakelog --dir ./log history
  lakelog --dir ./log history --past 30d --job archive
  lakelog --cold s3://bucket/log history --result died --output json
"""


def add_status(offer: Offer) -> None:
    text = "Show where every partition stands and how Redis is doing."
    added = offer.command(_status, text, _STATUS)
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")


def _status(arguments: argparse.Namespace) -> Page:
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
        raise Failed(_without_redis(told), describe(error)) from error
    errors = [{"topic": one.topic, "error": describe(one.error)} for one in seen.failures]
    page = Page(
        {
            "partitions": _partitions(seen, empty),
            "errors": Message("", errors),
            **_sentences(seen),
            "servers": _servers(seen),
            **({"disks": Table(disks)} if disks else {}),
        }
    )
    if errors:
        raise Failed(page, "\n".join(f"topic {one['topic']}: {one['error']}" for one in errors))
    return page


def _partitions(seen: Status, empty: str) -> Table:
    rows: list[dict[str, Any]] = []
    for part in seen.partitions:
        skipped = [f"{one.start_offset}..{one.end_offset - 1}" for one in part.skipped]
        one = row(
            part,
            "topic_partition state log_start=offsets.log_start archived_end=offsets.archived_end "
            "local_log_start=offsets.local_log_start log_end=offsets.log_end unarchived "
            "lag_ms=archive_lag_ms hot_size_bytes cold_size_bytes segments=cold_segments",
            skipped=", ".join(skipped) or None,
        )
        if not part.tiered:
            one |= {"archived_end": None, "cold_size_bytes": None, "segments": None}
        if part.cold_only:
            one |= {"local_log_start": None, "log_end": None}
        rows.append(one)
    columns = [*rows[0]] if rows else ["topic", "state"]
    rows += [{"topic": failed.topic, "state": "error"} for failed in seen.failures]
    return Table(rows, columns, empty=empty)


def _sentences(seen: Status) -> dict[str, Message]:
    """What is too long for a column."""
    from ..operate.status import UNARCHIVED, may_be_lost

    at_most = may_be_lost(seen.servers)
    skipped = [(part.topic_partition, one) for part in seen.partitions for one in part.skipped]
    # One stop leaves one in each partition: a sentence for each of the newest.
    newest = sorted(skipped, key=lambda pair: pair[1].recovered_ms or 0, reverse=True)[:_SENTENCES]
    lines = [one.sentence(topic_partition, at_most) for topic_partition, one in newest]
    if len(skipped) > len(lines):
        lines.append(f"… and {len(skipped) - len(lines):,} more; --output json has all")
    return {
        "warnings": Message(
            "\n".join(f"warning: {one.text}" for one in seen.warnings),
            [row(one, "topic_partition warning=text") for one in seen.warnings],
        ),
        "skipped": Message(
            "\n".join(lines),
            [
                {
                    "topic": topic_partition.topic,
                    "partition": topic_partition.partition,
                    **row(one, "start_offset end_offset last_append_ms recovered_ms"),
                    "may_be_lost": UNARCHIVED if one.was_lost else at_most,
                }
                for topic_partition, one in skipped
            ],
        ),
        "archiving": Message(
            "\n".join(f"archiving: {one.topic or 'Redis'}: {one}" for one in seen.troubles),
            [row(one, topic=one.topic or None, text=str(one)) for one in seen.troubles],
        ),
    }


def _servers(seen: Status) -> Table:
    rows = []
    for server in seen.servers:
        hours = seen.headroom_hours.get(server.name)
        rows.append(
            {
                "redis": server.name,
                "version": f"{server.program} {server.version}",
                "used_bytes": server.used_memory_bytes,
                "max_bytes": server.max_memory_bytes or None,
                "throttle_ms": seen.throttle_ms.get(server.name, 0),
                "headroom_hours": None if hours is None else float(f"{hours:.3g}"),
                **row(
                    server,
                    "eviction=eviction_policy append_only_file appendfsync clock_skew_ms",
                ),
            }
        )
    return Table(rows, empty="")


def _disks(log: Lakelog, directory: str | None) -> Iterator[dict[str, Any]]:
    """How much room this machine's disk has, where the log is on one."""
    from ..base.local_path import local_path
    from ..hot.embedded.folders import DiskSpace

    folder = local_path(directory, "log's directory") if directory else Path(str(log.place.cold))
    if directory or folder.is_absolute():  # neither a URL nor a name
        yield {"disk": str(folder), **row(DiskSpace.of(folder), "free_bytes size_bytes")}


def _told_in_cold(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """What archivers recorded beside the tables, for when Redis does not answer."""
    from ..errors import LakelogError
    from ..jobs.run_record import recent_troubles

    try:
        root = cold_root(arguments)
        return [] if root is None else recent_troubles(root)
    except LakelogError:  # the error to show is that Redis is away
        return []


def _without_redis(told: list[dict[str, Any]]) -> Page:
    lines = [
        f"archiving (as written down at {one['recorded_at']:%H:%M:%S} UTC): "
        f"{one['topic'] or 'Redis'}: {one['error']}"
        for one in told
    ]
    archiving = [
        {"topic": one["topic"], "recorded_at": one["recorded_at"], "text": one["error"]}
        for one in told
    ]
    return Page({"messages": Message("\n".join(lines)), "archiving": Message("", archiving)})


# -- history ---------------------------------------------------------------------------------------


def add_history(offer: Offer) -> None:
    text = "List the runs of jobs, notebooks and commands, the oldest first."
    added = offer.command(_history, text, _HISTORY)
    added.add_argument("--past", metavar="TIME", default="7d", help="how far back (default: 7d)")
    added.add_argument("--job", help="only of this job, such as archive or 'topics delete'")
    added.add_argument(
        "--result", choices=["running", "done", "failed", "stopped", "died"], help="only these"
    )


def _history(arguments: argparse.Namespace) -> Message:
    from datetime import timedelta

    from ..jobs.history import run_history

    past = parse_duration("--past", arguments.past, "10m, 8h or 7d")
    with open_archived(arguments) as log:
        runs = run_history(log, past=past)
    rows = [
        row(
            run,
            "began_at job what who result",
            began_at=run.began_at.isoformat(),
            duration_ms=round(run.duration / timedelta(milliseconds=1)),
            topics=len(run.topics),
            records=run.records,
            error=run.error,
            run_id=run.run_id,
        )
        for run in runs
        if arguments.job in (None, run.job) and arguments.result in (None, run.result)
    ]
    shown = [
        {
            **one,
            "began_at": one["began_at"][:19] + "Z",
            "seconds": round(one["duration_ms"] / 1000, 1),
        }
        for one in rows
    ]
    columns = ("began_at", "job", "what", "who", "result", "seconds", "records", "error")
    return Message(Table(shown, columns, empty=f"no run in the past {arguments.past}"), rows)

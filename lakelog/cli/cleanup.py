"""``lakelog cleanup run|plan``: forget by Kafka's rules, and keep the cold tier fast to read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..cleanup import STEPS
from . import recorded
from .connect import open_archived
from .engines import engines_table, say_engines
from .output import ConsoleProgress, Failed, Message, Page, Table, describe
from .settings import parse_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..cleanup.plan import CleanupPlan
    from ..cleanup.report import CleanupReport

_EPILOG = """\
retain    whole segments go, oldest first, by retention.ms, retention.bytes and the log start
compact   with cleanup.policy=compact, only the latest record of each key stays
optimize  a segment that lies in several files becomes one
vacuum    files that no reader should need any more are deleted (file.delete.delay.ms), and topics
          that were deleted as long ago are removed for good

Safe at any time, beside archivers and readers; running it again does nothing more. Without --redis
(--cold alone) it works on the tables under the cold root, by the settings of the last run that had
Redis (changed since: not known there), retention.bytes counts Parquet files alone, and Redis
follows with the next archive run. Exit code 1 when something could not be done; the rest was.

examples:
  lakelog --dir ./log cleanup plan
  lakelog --dir ./log cleanup plan orders --set retention.ms=86400000
  lakelog --dir ./log cleanup run
  lakelog --dir ./log cleanup run orders --step retain --step vacuum
  lakelog --cold s3://bucket/log cleanup run
"""

_PLAN_EPILOG = """\
delete    whole segments would go          keep   compaction leaves the partition alone, and why;
                                           or vacuum, since the catalog keeps it to itself
clean     superseded records would go      merge  the files of a segment would become one
sort      somebody else's file would be sorted by offset
purge     a deleted topic would be removed for good

Each step is planned on the table as it is now. What vacuum would delete is not planned: files that
no reader of the newest version needs.

examples:
  lakelog --dir ./log cleanup plan
  lakelog --dir ./log cleanup plan orders --set retention.ms=86400000
  lakelog --dir ./log cleanup plan orders --set cleanup.policy=compact --output json
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "cleanup",
        description="Forget by Kafka's rules, and keep the cold tier fast to read.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = added.add_subparsers(dest="verb", metavar="VERB", required=True)
    run = verbs.add_parser(
        "run",
        parents=[common],
        help="do it",
        description="Forget by Kafka's rules, and keep the cold tier fast to read.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are tiered")
    run.add_argument(
        "--step",
        action="append",
        choices=STEPS,
        help="only this step (may be given more than once); default: all, in this order",
    )
    run.add_argument(
        "--continuous",
        action="store_true",
        help="again every log.retention.check.interval.ms, until stopped",
    )
    run.add_argument(
        "--max-duration", metavar="TIME", help="end a continuous run after 30s, 10m, 8h or 2d"
    )
    run.set_defaults(run=_run, recorded="cleanup")
    plan = verbs.add_parser(
        "plan",
        parents=[common],
        help="show what would be done, and why",
        description="Show what cleanup would do to each partition, and why; changes nothing.",
        epilog=_PLAN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plan.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are tiered")
    plan.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what if a setting were this; repeatable",
    )
    plan.set_defaults(run=_plan)


def _run(arguments: argparse.Namespace) -> Page | Table | Iterator[Any]:
    from ..errors import CleanupFailedError, InvalidArgumentError

    if arguments.continuous:
        arguments.recorded = None  # it leaves rows of its own
        return _continuous(arguments)
    if arguments.max_duration is not None:
        raise InvalidArgumentError("--max-duration goes with --continuous")
    with ConsoleProgress().step("cleanup"):
        try:
            reports = _reports(arguments)
        except CleanupFailedError as error:
            page = _page(error.reports, arguments)
            raise Failed(page, "\n".join(_said_of_failures(error.reports))) from error
    return _page(reports, arguments)


def _reports(arguments: argparse.Namespace) -> Sequence[CleanupReport]:
    steps = tuple(arguments.step or STEPS)
    from ..errors import CleanupFailedError

    with open_archived(arguments) as log:
        try:
            reports = log.cleanup(arguments.topics or None, steps=steps)
        except CleanupFailedError as error:
            said = "\n".join(_said_of_failures(error.reports))
            recorded.partitions(arguments, log, error.reports, said)
            raise
        recorded.partitions(arguments, log, reports)
        return reports


def _continuous(arguments: argparse.Namespace) -> Iterator[Any]:
    import time
    from datetime import timedelta
    from functools import partial
    from uuid import uuid4

    from ..archive.watchers import wait_for_redis
    from ..errors import HotTierUnavailableError
    from ..jobs.status_rows import RunKey, RunOf
    from ..operate.who import who
    from .archive import max_duration
    from .stop_signals import told_to_stop

    duration = max_duration(arguments.max_duration)
    deadline_s = None if duration is None else time.monotonic() + duration.total_seconds()
    key = RunKey("cleanup --continuous", f"unnamed-{uuid4().hex}")
    arguments.abandoned = True  # see `archive`
    with told_to_stop("the cleanup", "the next run goes on where it was") as stop:
        opened = wait_for_redis(
            partial(open_archived, arguments), stop, deadline_s, what="cleaning up"
        )
        if opened is None:
            raise HotTierUnavailableError("the run ended before Redis answered; nothing was done")
        run = RunOf(who(), recorded.said(arguments.argv))
        with opened as log, recorded.continuous(arguments, log, key, run) as did:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            for report in log.clean_continuously(
                arguments.topics or None,
                steps=tuple(arguments.step or STEPS),
                stop=stop,
                max_duration=None if left_s is None else timedelta(seconds=left_s),
            ):
                did.append(report)
                if arguments.output == "json":
                    yield from _done(report)
                else:
                    yield Message(str(report))


def _plan(arguments: argparse.Namespace) -> Page:
    settings = parse_settings("--set", arguments.set)
    with open_archived(arguments) as log:
        plans = log.cleanup_plan(arguments.topics or None, settings)
    rows = [row for plan in plans for row in _planned(plan)]
    topics = ", ".join(plan.topic for plan in plans)
    empty = f"nothing would go: {topics}" if plans else _no_topics(arguments)
    warnings = [(plan.topic, warning) for plan in plans for warning in plan.warnings]
    return _with_warnings({"plan": Table(rows, empty=empty)}, arguments, warnings)


def _no_topics(arguments: argparse.Namespace) -> str:
    if arguments.cold and not arguments.redis:
        return f"no topic's table lies under {arguments.cold}: if one should, check that path"
    return "no topic has a cold tier"


def _planned(plan: CleanupPlan) -> list[dict[str, Any]]:
    return [
        {
            "topic": plan.topic,
            "partition": one.topic_partition and one.topic_partition.partition,
            "step": one.step,
            "action": one.action,
            "segments": one.segments,
            "files": one.files,
            "records": one.records,
            "size_bytes": one.size_bytes,
            "why": one.why,
        }
        for one in plan.steps
    ]


def _page(reports: Sequence[CleanupReport], arguments: argparse.Namespace) -> Page:
    fine = ", ".join(report.topic for report in reports if not report.failures)
    empty = f"nothing to clean up: {fine}" if fine else "nothing was cleaned up"
    done = Table(
        [row for report in reports for row in _done(report)],
        _COLUMNS,
        empty=empty if reports else _no_topics(arguments),
    )
    failures = [
        {
            "topic": report.topic,
            "partition": failure.topic_partition and failure.topic_partition.partition,
            "step": failure.step,
            "error": type(failure.error).__name__,
            "message": str(failure.error),
        }
        for report in reports
        for failure in report.failures
    ]
    parts: dict[str, Any] = {"done": done}
    if arguments.output == "json":
        parts["failures"] = Table(failures)
    left = [(report.topic, one) for report in reports for one in report.left]
    if arguments.output == "json":
        parts["left_to_catalog"] = Table(
            [{"topic": topic, "step": one.step, "files": one.files} for topic, one in left]
        )
    elif left:
        parts["left"] = Message("\n".join(f"{topic}: {one}" for topic, one in left))
    engines = {report.topic: report.engines for report in reports}
    if arguments.output == "json":
        parts["engines"] = engines_table(engines)
    else:
        say_engines(engines)
    warnings = [(report.topic, warning) for report in reports for warning in report.warnings]
    return _with_warnings(parts, arguments, warnings)


def _said_of_failures(reports: Sequence[CleanupReport]) -> list[str]:
    return [
        f"{failure.topic_partition or report.topic}: {failure.step}: {describe(failure.error)}"
        for report in reports
        for failure in report.failures
    ]


def _with_warnings(
    parts: dict[str, Any], arguments: argparse.Namespace, warnings: Sequence[tuple[str, str]]
) -> Page:
    if arguments.output == "json":
        rows = [{"topic": topic, "warning": text} for topic, text in warnings]
        parts["warnings"] = Table(rows)
    elif warnings:
        parts["warnings"] = Message("\n".join(f"warning: {text}" for _, text in warnings))
    return Page(parts)


#: What text shows; JSON has Kafka's measures too.
_COLUMNS = (
    "topic",
    "partition",
    "step",
    "segments",
    "segments_after",
    "files",
    "files_after",
    "records",
    "records_after",
    "size_bytes",
    "size_bytes_after",
    "duration_ms",
)


def _done(report: CleanupReport) -> list[dict[str, Any]]:
    """One row for each step and partition, all with the same members."""

    def row(step: str, partition: int | None, **values: Any) -> dict[str, Any]:
        columns = {
            "segments": None,
            "segments_after": None,
            "files": None,
            "files_after": None,
            "records": None,
            "records_after": None,
            "size_bytes": None,
            "size_bytes_after": None,
            "duration_ms": None,
        }
        return {"topic": report.topic, "partition": partition, "step": step, **columns, **values}

    rows = [
        row(
            "retain",
            one.topic_partition.partition,
            segments=len(one.dropped),
            segments_after=0,
            files=len(one.removes),
            files_after=0,
            records=one.records,
            records_after=0,
            size_bytes=one.size_bytes,
            size_bytes_after=0,
            log_start=one.log_start,
        )
        for one in report.retained
    ]
    rows += [
        row(
            "compact",
            one.topic_partition.partition,
            segments=one.segments_before,
            segments_after=one.segments_after,
            files=one.files_before,
            files_after=one.files_after,
            records=one.records_read,
            records_after=one.records_kept,
            size_bytes=one.bytes_read,
            size_bytes_after=one.bytes_kept,
            duration_ms=round(one.seconds * 1000),
            dirty_ratio_before=round(one.dirty_ratio_before, 4),
            dirty_ratio_after=round(one.dirty_ratio_after, 4),
            recopy_percent=round(one.recopy_percent, 1),
            keyless_dropped=one.keyless_dropped,
            tombstones_dropped=one.tombstones_dropped,
            cleaned_end=one.cleaned_end,
        )
        for one in report.compacted
    ]
    rows += [
        row(
            "optimize",
            one.topic_partition.partition,
            segments=one.segments,
            segments_after=one.segments,
            files=one.files_before,
            files_after=one.files_after,
            records=one.records,
            records_after=one.records,
            size_bytes=one.bytes_before,
            size_bytes_after=one.bytes_after,
            duration_ms=round(one.seconds * 1000),
        )
        for one in report.optimized
    ]
    if report.vacuumed is not None and report.vacuumed.files:
        rows.append(
            row(
                "vacuum",
                None,
                files=report.vacuumed.files,
                files_after=0,
                size_bytes=report.vacuumed.size_bytes,
                size_bytes_after=0,
            )
        )
    if report.purged is not None:
        cold = report.purged.cold
        files, size_bytes = (cold.files, cold.size_bytes) if cold else (0, 0)
        rows.append(
            row(
                "purge",
                None,
                files=files,
                files_after=0,
                size_bytes=size_bytes,
                size_bytes_after=0,
                topic_id=str(report.purged.topic.topic_id),
            )
        )
    if report.orphans_removed:
        rows.append(row("orphans", None, files=report.orphans_removed, files_after=0))
    rows += [
        row("trim Redis", partition, records=gone.end - gone.start, records_after=0)
        for partition, gone in sorted(report.trimmed.items())
    ]
    return rows

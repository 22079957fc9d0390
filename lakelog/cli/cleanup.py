"""``lakelog cleanup run|plan``: forget by Kafka's rules, and keep the cold tier fast to read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..cleanup import STEPS
from . import recorded
from .connect import open_archived
from .options import Offer, parse_settings
from .output import Failed, Message, Page, Table, describe, row
from .progress import ConsoleProgress, engines_told
from .stop_signals import told_to_stop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..cleanup.report import CleanupReport

_RUN = """\
retain    whole segments go, oldest first, by retention.ms, retention.bytes and the log start
compact   with cleanup.policy=compact, only the latest record of each key stays
optimize  a segment that lies in several files becomes one
vacuum    files that no reader should need any more are deleted (file.delete.delay.ms), and topics
          that were deleted as long ago are removed for good

Safe at any time; running it again does nothing more. Without --redis it goes by the settings of the
last run that had Redis, and counts Parquet files alone. Exit code 1 when something could not be
done; the rest was. More: `lakelog help cleanup`.

examples:
  lakelog --dir ./log cleanup plan
  lakelog --dir ./log cleanup plan orders --set retention.ms=86400000
  lakelog --dir ./log cleanup run
  lakelog --dir ./log cleanup run orders --step retain --step vacuum
  lakelog --cold s3://bucket/log cleanup run
"""

_PLAN = """\
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


def add_cleanup(offer: Offer) -> None:
    text = "forget by Kafka's rules, and keep the cold tier fast to read"
    verb = offer.verbs(f"{text[0].upper()}{text[1:]}.", _RUN)
    run = verb("run", _run, text, _RUN, recorded="cleanup")
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
    text = "show what it would do to each partition, and why; changes nothing"
    plan = verb("plan", _plan, text, _PLAN)
    plan.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what if a setting were this; repeatable",
    )
    for added in (run, plan):
        added.add_argument(
            "topics", nargs="*", metavar="TOPIC", help="default: all that are tiered"
        )


def _run(arguments: argparse.Namespace) -> Page | Iterator[Any]:
    from ..errors import InvalidArgumentError, PartlyFailedError

    if arguments.continuous:
        return _continuous(arguments)
    if arguments.max_duration is not None:
        raise InvalidArgumentError("--max-duration goes with --continuous")
    with ConsoleProgress().step("cleanup"), open_archived(arguments) as log:
        try:
            reports = log.cleanup(arguments.topics or None, steps=tuple(arguments.step or STEPS))
        except PartlyFailedError as error:
            said = "\n".join(
                f"{one.topic_partition or report.topic}: {one.step}: {describe(one.error)}"
                for report in error.reports
                for one in report.failures
            )
            recorded.partitions(arguments, log, error.reports, said)
            raise Failed(_page(error.reports, arguments), said) from error
        recorded.partitions(arguments, log, reports)
    return _page(reports, arguments)


def _continuous(arguments: argparse.Namespace) -> Iterator[Any]:
    from ..errors import HotTierUnavailableError

    run = recorded.ContinuousRun(arguments, "cleanup --continuous")
    with told_to_stop("the cleanup", "the next run goes on where it was") as stop:
        opened = run.opened(open_archived, stop, what="cleaning up")
        if opened is None:
            raise HotTierUnavailableError("the run ended before Redis answered; nothing was done")
        with opened as log, run.recorded(log) as did:
            for report in log.clean_continuously(
                arguments.topics or None,
                steps=tuple(arguments.step or STEPS),
                stop=stop,
                max_duration=run.left(),
            ):
                did.append(report)
                yield Message(str(report), _done(report))


def _plan(arguments: argparse.Namespace) -> Page:
    settings = parse_settings("--set", arguments.set)
    with open_archived(arguments) as log:
        plans = log.cleanup_plan(arguments.topics or None, settings)
    fields = "partition=topic_partition.partition step action segments files records size_bytes why"
    rows = [{"topic": plan.topic, **row(one, fields)} for plan in plans for one in plan.steps]
    topics = ", ".join(plan.topic for plan in plans)
    empty = f"nothing would go: {topics}" if plans else _no_topics(arguments)
    warnings = _warnings((plan.topic, warning) for plan in plans for warning in plan.warnings)
    return Page({"plan": Table(rows, empty=empty), "warnings": warnings})


def _warnings(found: Iterable[tuple[str, str]]) -> Message:
    warnings = list(found)
    text = "\n".join(f"warning: {one}" for _, one in warnings)
    return Message(text, [{"topic": topic, "warning": one} for topic, one in warnings])


def _no_topics(arguments: argparse.Namespace) -> str:
    if arguments.cold and not arguments.redis:
        return f"no topic's table lies under {arguments.cold}: if one should, check that path"
    return "no topic has a cold tier"


def _page(reports: Sequence[CleanupReport], arguments: argparse.Namespace) -> Page:
    fine = ", ".join(report.topic for report in reports if not report.failures)
    empty = f"nothing to clean up: {fine}" if fine else "nothing was cleaned up"
    failures = [
        {
            "topic": report.topic,
            **row(one, "partition=topic_partition.partition step"),
            "error": type(one.error).__name__,
            "message": str(one.error),
        }
        for report in reports
        for one in report.failures
    ]
    left = [(report.topic, one) for report in reports for one in report.left]
    return Page(
        {
            "done": Table(
                [one for report in reports for one in _done(report)],
                ("topic", "partition", "step", *_MEASURES),
                empty=empty if reports else _no_topics(arguments),
            ),
            "failures": Message("", failures),
            "left_to_catalog": Message(
                "\n".join(f"{topic}: {one}" for topic, one in left),
                [{"topic": topic, **row(one, "step files")} for topic, one in left],
            ),
            "engines": engines_told({report.topic: report.engines for report in reports}),
            "warnings": _warnings(
                (report.topic, warning) for report in reports for warning in report.warnings
            ),
        }
    )


#: What all steps tell, and text shows; JSON has Kafka's measures too.
_MEASURES = (
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
    rows: list[dict[str, Any]] = []

    def add(step: str, partition: int | None, **measures: Any) -> None:
        told = {name: measures.get(name) for name in _MEASURES}
        rows.append(
            {"topic": report.topic, "partition": partition, "step": step, **told, **measures}
        )

    def gone(step: str, partition: int | None, **measures: Any) -> None:
        """Of a step that leaves nothing of what it took."""
        after = {f"{name}_after": 0 for name in measures if f"{name}_after" in _MEASURES}
        add(step, partition, **measures, **after)

    for retained in report.retained:
        gone(
            "retain",
            retained.topic_partition.partition,
            segments=len(retained.dropped),
            files=len(retained.removes),
            **row(retained, "records size_bytes log_start"),
        )
    for one in report.compacted:
        add(
            "compact",
            one.topic_partition.partition,
            **row(
                one,
                "segments=segments_before segments_after files=files_before files_after "
                "records=records_read records_after=records_kept size_bytes=bytes_read "
                "size_bytes_after=bytes_kept",
            ),
            duration_ms=round(one.seconds * 1000),
            dirty_ratio_before=round(one.dirty_ratio_before, 4),
            dirty_ratio_after=round(one.dirty_ratio_after, 4),
            recopy_percent=round(one.recopy_percent, 1),
            **row(one, "keyless_dropped tombstones_dropped cleaned_end"),
        )
    for merged in report.optimized:
        add(
            "optimize",
            merged.topic_partition.partition,
            **row(
                merged,
                "segments segments_after=segments files=files_before files_after records "
                "records_after=records size_bytes=bytes_before size_bytes_after=bytes_after",
            ),
            duration_ms=round(merged.seconds * 1000),
        )
    if report.vacuumed is not None and report.vacuumed.files:
        gone("vacuum", None, **row(report.vacuumed, "files size_bytes"))
    if report.purged is not None:
        cold = report.purged.cold
        gone(
            "purge",
            None,
            files=cold.files if cold else 0,
            size_bytes=cold.size_bytes if cold else 0,
            topic_id=str(report.purged.topic.topic_id),
        )
    if report.orphans_removed:
        gone("orphans", None, files=report.orphans_removed)
    for partition, trimmed in sorted(report.trimmed.items()):
        gone("trim Redis", partition, records=trimmed.end - trimmed.start)
    return rows

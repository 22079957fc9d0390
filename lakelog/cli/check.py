"""``lakelog check``: whether all of a log is as it should be."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from .connect import no_topics, open_archived
from .engines import engines_table, say_engines
from .findings import finding_row, findings_shown
from .output import ConsoleProgress, Failed, Message, Page, Table

if TYPE_CHECKING:
    from ..operate.check.finding import CheckReport

_EPILOG = """\
Reads all records of both tiers. A fault is one of:

  corrupt, foreign      an entry, file or key is not what was written, or is somebody else's
  missing-file          the table names a file that is gone
  order, doubled, hole  offsets lie where they do not belong, are there twice, or are missing
  differs               the tiers hold different records under one offset
  statistics *          what is said of segments, entries and files is not what they hold
  time-index *          Redis's time index does not say where timestamps are
  segment, gap          Redis's segments or declared gaps do not fit the log
  register              a number that says where the log starts or ends is not what is there
  table, topic          a table cannot be read, or only its table knows a topic (restore)
  properties *          a table's properties are not the topic's settings
  registry *            a partition does not go by its topic's settings
  partition *           Redis does not have a partition
  orphan *              a file that no commit names, or ever can
  group-offset          a group's offset is of something that never was
  store                 the store does not do what is needed; of two commits it must refuse one
  unreachable           a tier that was named, or a file, cannot be read now: nothing is known to
                        be wrong with it, and it was not checked

--repair puts right what has a *, where that follows from what is sound, says what it did, and
checks again. It deletes no record and changes no offset; of files, statistics are not rewritten.
Beside faults it tells what may be meant: groups above the log end or below the log start, files
that are still being written. Exit code 1 if there is a fault, or if something could not be read.
Without --redis the cold tier alone is checked. A table by name whose files are not shown is checked
by its rows, on Spark; what only its files could tell stands in the column "not checked".

examples:
  lakelog --dir ./log check
  lakelog --dir ./log check orders payments --repair
  lakelog --cold s3://bucket/log --engine spark check --output json
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "check",
        parents=[common],
        description="Check all topics, both tiers, groups' offsets and the store.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.add_argument("--tier", choices=["hot", "cold", "both"], default="both")
    added.add_argument("--repair", action="store_true", help="put right what can be derived")
    added.set_defaults(run=_run, recorded="check")


def _run(arguments: argparse.Namespace) -> Page:
    report, empty = _report(arguments)
    page = _page(report, empty, as_json=arguments.output == "json")
    if not report.sound:
        raise Failed(page, _counted(report))
    return page


def _report(arguments: argparse.Namespace) -> tuple[CheckReport, str]:
    """The report, and what to say if there are no topics."""
    from ..errors import HotTierAccessError, HotTierUnavailableError
    from ..operate.check.check import with_unreachable

    try:
        return _checked(arguments)
    except (HotTierUnavailableError, HotTierAccessError) as error:
        if not arguments.cold:
            raise
        without = argparse.Namespace(**{**vars(arguments), "redis": None})
        report, empty = _checked(without)
        return with_unreachable(report, error), empty


def _checked(arguments: argparse.Namespace) -> tuple[CheckReport, str]:
    from ..operate.check.finding import TIERS

    tiers = TIERS if arguments.tier == "both" else (arguments.tier,)
    with open_archived(arguments) as log, ConsoleProgress().step("check") as step:
        report = log.check(
            arguments.topics or None, repair=arguments.repair, tiers=tiers, progress=step.advance
        )
        return report, "" if report.partitions else no_topics(log)


def _page(report: CheckReport, empty: str, *, as_json: bool) -> Page:
    parts: dict[str, Any] = {
        "partitions": Table(
            [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "verdict": one.verdict,
                    "records": one.records,
                    "faults": one.faults,
                    "not_checked": one.not_checked or None,
                }
                for one in report.partitions
            ],
            empty=empty or "no topics",
        )
    }
    if report.store or as_json:
        parts["store"] = Table(
            [
                {
                    "step": one.name,
                    "works": one.flaw is None and one.latency_ms is not None,
                    "latency_ms": None if one.latency_ms is None else round(one.latency_ms, 2),
                }
                for one in report.store
            ],
            title="the cold root's store:",
        )
    if report.repairs or as_json:
        parts["repairs"] = Table(
            [
                {
                    "fault": one.kind,
                    "topic": one.topic,
                    "partition": one.partition,
                    "done": one.done,
                    "what": one.what,
                }
                for one in report.repairs
            ],
            title="repaired, and checked again:",
        )
    if as_json:
        parts["notices"] = Table([finding_row(one) for one in report.notices])
        parts["engines"] = engines_table(report.engines)
    else:
        if report.notices:
            parts["notices"] = _notices(report)
        say_engines(report.engines)
    sound = "checked: no faults"
    parts["findings"] = findings_shown(report.findings, as_json, sound=sound)
    return Page(parts)


def _counted(report: CheckReport) -> str:
    """For the list of runs, and for who pipes the tables elsewhere."""
    kinds = Counter(one.kind for one in report.findings)
    return "faults found: " + ", ".join(f"{many:,} × {kind.value}" for kind, many in kinds.items())


def _notices(report: CheckReport) -> Message:
    lines = [f"  {one.place}, {one.where}: {one.what}" for one in report.notices[:20]]
    more = len(report.notices) - len(lines)
    if more:
        lines.append(f"  and {more:,} more (--output json has them all)")
    return Message("\n".join(["no fault, but told:", *lines]))

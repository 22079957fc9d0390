"""``lakelog check``, ``skip``: whether a log is as it should be; taking a bad entry or file out."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .connect import no_topics, open_archived, open_log
from .options import Offer
from .output import Failed, Message, Page, Table, row
from .progress import ConsoleProgress, engines_told

if TYPE_CHECKING:
    from ..operate.check.finding import CheckReport, Finding
    from ..operate.skip import Skip

#: What is told beside faults, as text.
_NOTICES = 20

_CHECK = """\
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

_SKIP = """\
The bytes of an entry, or the name of a file, are saved to a new file, and the offsets become a gap,
which readers skip and report. Nothing is put back. A skipped file stays in the table's folder for
file.delete.delay.ms: copy it, if something of it may still be read. More: `lakelog help skip`.

examples:
  lakelog --dir ./log skip add orders -p 0 --entry 1999-100 --dry-run
  lakelog --dir ./log skip add orders -p 0 --entry 1999-100 --reason "bit flip, host 7"
  lakelog --dir ./log skip add orders -p 0 --file archive-00000000000000001000-….parquet
  lakelog --dir ./log skip list orders
"""


def add_check(offer: Offer) -> None:
    added = offer.command(
        _run,
        "Check all topics, both tiers, groups' offsets and the store.",
        _CHECK,
        recorded="check",
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.add_argument("--tier", choices=["hot", "cold", "both"], default="both")
    added.add_argument("--repair", action="store_true", help="put right what can be derived")


def _run(arguments: argparse.Namespace) -> Page:
    report, empty = _report(arguments)
    page = _page(report, empty)
    if not report.sound:
        kinds = Counter(one.kind.value for one in report.findings)
        # For the list of runs, and for who pipes the tables elsewhere.
        said = ", ".join(f"{many:,} × {kind}" for kind, many in kinds.items())
        raise Failed(page, f"faults found: {said}")
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


def _page(report: CheckReport, empty: str) -> Page:
    partitions = [row(one, not_checked=one.not_checked or None) for one in report.partitions]
    store = [
        {
            "step": one.name,
            "works": one.flaw is None and one.latency_ms is not None,
            "latency_ms": None if one.latency_ms is None else round(one.latency_ms, 2),
        }
        for one in report.store
    ]
    repairs = [row(one, "fault=kind topic partition done what") for one in report.repairs]
    notices = [f"  {one.place}, {one.where}: {one.what}" for one in report.notices[:_NOTICES]]
    if more := len(report.notices) - len(notices):
        notices.append(f"  and {more:,} more (--output json has them all)")
    return Page(
        {
            "partitions": Table(partitions, empty=empty or "no topics"),
            "store": Table(store, empty="", title="the cold root's store:"),
            "repairs": Table(repairs, empty="", title="repaired, and checked again:"),
            "notices": Message(
                "\n".join(["no fault, but told:", *notices] if notices else []),
                [_finding(one) for one in report.notices],
            ),
            "engines": engines_told(report.engines),
            "findings": findings_shown(report.findings, sound="checked: no faults"),
        }
    )


# -- findings --------------------------------------------------------------------------------------


def findings_shown(
    findings: Sequence[Finding], *, sound: str = "verified: everything holds what it says"
) -> Message:
    """The findings of a check or a verification: a paragraph for each place; rows as JSON.

    Args:
        sound: what to say if there are none.
    """
    parts = [f"{len(findings):,} finding{'s' if len(findings) > 1 else ''}"] if findings else []
    for place, group in groupby(findings, lambda f: (f.place, f.tier, f.where)):
        name, tier, where = place
        parts.append(f"\n{name}, {'both tiers' if tier == 'both' else tier}: {where}")
        parts += [wrapped(f"{finding.kind.value}: {finding.what}") for finding in group]
    return Message("\n".join(parts) or sound, [_finding(one) for one in findings])


def _finding(finding: Finding) -> dict[str, Any]:
    """All that is known of a finding; ranges of offsets are half-open."""
    offsets = [[low, end] for low, end in finding.offsets]
    fields = "fault=kind topic partition tier where what offsets repairable"
    return row(finding, fields, offsets=offsets)


def wrapped(text: str) -> str:
    """An indented paragraph, as wide as the terminal."""
    width = max(60, shutil.get_terminal_size((100, 0)).columns - 1)
    return textwrap.fill(
        text,
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


# -- skip ------------------------------------------------------------------------------------------


def add_skip(offer: Offer) -> None:
    verb = offer.verbs("Skip a bad entry or file; list what was skipped.")
    added = verb("add", _skip, "skip a bad entry or file", _SKIP, recorded="skip add")
    added.add_argument("topic")
    added.add_argument("-p", "--partition", type=int, required=True)
    what = added.add_mutually_exclusive_group(required=True)
    what.add_argument("--entry", metavar="ID", help="of the stream, as errors show it")
    what.add_argument("--file", metavar="PATH", help="of the table, or the end of its path")
    added.add_argument("--reason", default="", help="default: what is wrong")
    added.add_argument("--save-to", metavar="FILE", help="a file that is not there yet")
    added.add_argument("--dry-run", action="store_true", help="only say what would go")
    listed = verb("list", _skips, "what was skipped", _SKIP)
    listed.add_argument("topic")
    listed.add_argument("-p", "--partition", type=int, help="default: all partitions")


def _skip(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        skips = log.skips(arguments.topic, arguments.partition)
        how: dict[str, Any] = {"save_to": arguments.save_to, "dry_run": arguments.dry_run}
        if arguments.entry is not None:
            skip = skips.skip_entry(arguments.entry, arguments.reason, **how)
        else:
            skip = skips.skip_file(arguments.file, arguments.reason, **how)
    values = _skip_row(skip)
    kind, what = ("entry", "bytes") if skip.tier == "hot" else ("file", "name")
    verb = "would be skipped, and" if arguments.dry_run else "is skipped, and"
    offsets = values["offsets"]
    speaks = f"its offsets {offsets}" if offsets else "it speaks for no offsets"
    return Message(
        f"{kind} {skip.name} {verb} its {what} saved to {skip.saved_to} ({speaks}, "
        f"{skip.size_bytes} bytes): {skip.reason}",
        values,
    )


def _skips(arguments: argparse.Namespace) -> Table:
    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        numbers = range(topic.partitions) if arguments.partition is None else [arguments.partition]
        skips = [one for number in numbers for one in log.skips(topic, number).list()]
    columns = ["partition", "tier", "id", "offsets", "size_bytes", "skipped_at_ms", "who", "reason"]
    return Table(map(_skip_row, skips), [*columns, "saved_to"], empty="nothing was skipped")


def _skip_row(one: Skip) -> dict[str, Any]:
    offsets = f"{one.gap.start}..{one.gap.end - 1}" if one.gap.start < one.gap.end else ""
    return {
        **row(one, "topic_partition tier id=name"),
        "offsets": offsets,
        **row(one, "size_bytes skipped_at_ms=skipped_ms who reason saved_to"),
    }

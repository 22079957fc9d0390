"""``lakelog archive``: move what Redis holds into Delta tables, once or continuously."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import recorded
from .connect import cold_root, no_topics, open_log
from .options import Offer
from .output import Failed, Message, Table, describe, row
from .progress import ConsoleProgress, engine_names, engines_told
from .stop_signals import told_to_stop

if TYPE_CHECKING:
    from ..archive.report import ArchiveReport
    from ..lakelog import Lakelog

_LEFT = "what is not archived is in Redis, where the next run finds it"

_EPILOG = """\
Archiving copies what Redis alone holds into each topic's Delta table, then trims Redis as far as
local.retention.ms and local.retention.bytes allow. Any number may run at once; killing one loses
nothing. A continuous run outlives outages, says on standard error what fails, and ends within three
seconds of SIGTERM or SIGINT, at once when it is told again. More: `lakelog help archive`.

examples:
  lakelog --dir ./log archive
  lakelog --dir ./log archive orders --until=-1h
  lakelog --redis redis://host:6379 --cold s3://bucket/log archive --continuous --max-duration 8h
  lakelog --dir ./log archive --continuous --cleanup
"""


def add_archive(offer: Offer) -> None:
    added = offer.command(
        _run,
        "Move records from Redis to Delta.",
        _EPILOG,
        when_stopped=f"stopped; {_LEFT}",
        makes_log=True,
        recorded="archive",
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are tiered")
    added.add_argument(
        "--until", metavar="POSITION", default="latest", help="an offset or a time; default: latest"
    )
    added.add_argument(
        "--continuous",
        action="store_true",
        help="go on by each topic's lakelog.flush.rows and lakelog.flush.interval.ms until stopped",
    )
    added.add_argument(
        "--cleanup",
        action="store_true",
        help="beside a continuous run, what `lakelog cleanup run --continuous` does",
    )
    added.add_argument(
        "--adopt",
        action="store_true",
        help="archive here from now on though the topic was archived into another table before, "
        "which is gone for good",
    )
    added.add_argument(
        "--max-duration", metavar="TIME", help="end a continuous run after 30s, 10m, 8h or 2d"
    )


def _run(arguments: argparse.Namespace) -> Table | Iterator[Any]:
    from ..errors import InvalidArgumentError, PartlyFailedError

    if arguments.adopt and (arguments.continuous or not arguments.topics):
        raise InvalidArgumentError("--adopt goes with the names of topics, not with --continuous")
    if arguments.continuous:
        if arguments.until != "latest":
            raise InvalidArgumentError("--continuous has no --until; it ends by --max-duration")
        return _continuous(arguments, recorded.ContinuousRun(arguments, "archive --continuous"))
    if arguments.max_duration is not None or arguments.cleanup:
        raise InvalidArgumentError("--max-duration and --cleanup go with --continuous")
    with open_log(arguments) as log, ConsoleProgress().step("archive") as step:
        try:
            reports = log.archive(arguments.topics or None, arguments.until, adopt=arguments.adopt)
        except KeyboardInterrupt:
            # It has waited for its threads. One that still runs changes neither what is said nor
            # the exit code.
            arguments.abandoned = True
            raise
        except PartlyFailedError as error:
            step.advance(sum(report.records for report in error.reports))
            said = "\n".join(
                f"{topic}: {describe(one)}"
                for topic, found in error.errors.items()
                for one in found
            )
            recorded.partitions(arguments, log, error.reports, said)
            raise Failed(_table(error.reports, "nothing was archived"), said) from error
        step.advance(sum(report.records for report in reports))
        recorded.partitions(arguments, log, reports)
        empty = _nothing(log, reports)
    for report in reports:
        for trouble in report.troubles:  # archived all the same
            print(f"  {report.topic}: {trouble}", file=sys.stderr)
    engines = engines_told({report.topic: report.engines for report in reports})
    if engines.text:
        print(engines.text, file=sys.stderr)
    return _table(reports, empty)


def _nothing(log: Lakelog, reports: Sequence[ArchiveReport]) -> str:
    """Why there was nothing to archive."""
    if reports:
        return "nothing to archive: the cold tier holds everything already"
    if log.topics.list():
        return "nothing to archive: no topic has a cold tier (remote.storage.enable=false)"
    return f"nothing to archive: {no_topics(log)}"


def _table(reports: Sequence[ArchiveReport], empty: str) -> Table:
    rows = [row for report in reports for row in _rows(report)]
    return Table(rows, list(dict.fromkeys(name for row in rows for name in row)), empty)


def _continuous(arguments: argparse.Namespace, run: recorded.ContinuousRun) -> Iterator[Message]:
    from ..errors import ArchiveUnfinishedError
    from ..jobs.run_record import TroubleRows

    root = None if arguments.dir else cold_root(arguments)
    tell = None if root is None else TroubleRows(root, key=run.key, run=run.run)
    with told_to_stop("the archiver", _LEFT) as stop:
        opened = run.opened(open_log, stop, tell, what="archiving from Redis")
        if opened is None:
            raise ArchiveUnfinishedError(
                "the run ended before Redis answered; what is there to archive is in Redis, where "
                "the next run finds it",
                troubles=(),
                abandoned=False,
            )
        # Before, `tell` says why nothing is archived.
        with opened as log, run.recorded(log) as did:
            place = log.place
            reports = log.archive_continuously(
                arguments.topics or None,
                stop=stop,
                max_duration=run.left(),
                tell=TroubleRows(place.cold, place.naming_status, key=run.key, run=run.run)
                if place.cold
                else None,
                cleaned=did.append if arguments.cleanup else None,
            )
            for report in reports:
                did.append(report)
                yield Message(str(report), _rows(report))


def _rows(report: ArchiveReport) -> list[dict[str, Any]]:
    return [
        {
            "topic": report.topic,
            "partition": done.topic_partition.partition,
            **row(done, "start_offset end_offset records size_bytes files"),
            "duration_ms": round(done.seconds * 1000),
            "engine": engine_names(report.engines),
            **({"unparsed": done.unparsed} if report.unparsed else {}),
        }
        for done in report.partitions
    ]

"""``lakelog archive``: move what Redis holds into Delta tables, once or continuously."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import recorded
from .connect import cold_root, no_topics, open_log
from .engines import engine_names, say_engines
from .output import ConsoleProgress, Failed, Message, Table, describe

if TYPE_CHECKING:
    from datetime import timedelta

    from ..archive.report import ArchiveReport
    from ..lakelog import Lakelog

_LEFT = "what is not archived is in Redis, where the next run finds it"

_EPILOG = """\
Archiving copies what Redis alone holds into each topic's Delta table, then trims Redis as far as
local.retention.ms and local.retention.bytes allow. Running it again does nothing. Any number may
run at once; killing one loses nothing. A continuous run outlives any outage of Redis or of the
store, also one that it starts in, says on standard error what fails, and ends within three seconds
of SIGTERM or SIGINT, at once when it is told again.

examples:
  lakelog --dir ./log archive
  lakelog --dir ./log archive orders --until=-1h
  lakelog --redis redis://host:6379 --cold s3://bucket/log archive --continuous --max-duration 8h
  lakelog --dir ./log archive --continuous --cleanup
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "archive",
        parents=[common],
        description="Move records from Redis to Delta.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    added.set_defaults(
        run=_run, when_stopped=f"stopped; {_LEFT}", makes_log=True, recorded="archive"
    )


def _run(arguments: argparse.Namespace) -> Table | Iterator[Any]:
    from ..errors import ArchiveFailedError, InvalidArgumentError

    if arguments.adopt and (arguments.continuous or not arguments.topics):
        raise InvalidArgumentError("--adopt goes with the names of topics, not with --continuous")
    if arguments.continuous:
        arguments.recorded = None  # it leaves rows of its own, also before Redis answers
        if arguments.until != "latest":
            raise InvalidArgumentError("--continuous has no --until; it ends by --max-duration")
        return _continuous(arguments, max_duration(arguments.max_duration))
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
        except ArchiveFailedError as error:
            step.advance(sum(report.records for report in error.reports))
            said = [
                f"{topic}: {describe(one)}"
                for topic, found in error.errors.items()
                for one in found
            ]
            recorded.partitions(arguments, log, error.reports, "\n".join(said))
            raise Failed(_table(error.reports, "nothing was archived"), "\n".join(said)) from error
        step.advance(sum(report.records for report in reports))
        recorded.partitions(arguments, log, reports)
        empty = _nothing(log, reports)
    for report in reports:
        for trouble in report.troubles:  # archived all the same
            print(f"  {report.topic}: {trouble}", file=sys.stderr)
    say_engines({report.topic: report.engines for report in reports})
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


def _continuous(arguments: argparse.Namespace, max_duration: timedelta | None) -> Iterator[Any]:
    import time
    from datetime import timedelta
    from functools import partial
    from uuid import uuid4

    from ..archive.watchers import wait_for_redis
    from ..errors import ArchiveUnfinishedError
    from ..jobs.status_rows import RunKey, RunOf
    from ..jobs.trouble_rows import JOB, TroubleRows
    from ..operate.who import who
    from .stop_signals import told_to_stop

    deadline_s = None
    if max_duration is not None:
        deadline_s = time.monotonic() + max_duration.total_seconds()
    root = None if arguments.dir else cold_root(arguments)
    key = RunKey(JOB, f"unnamed-{uuid4().hex}")
    run = RunOf(who(), recorded.said(arguments.argv))
    tell = None if root is None else TroubleRows(root, key=key, run=run)
    # Its threads are left running, and an orderly end of the interpreter unloads the stores'
    # libraries while some threads are still in them: a crash instead of an exit code.
    arguments.abandoned = True
    with told_to_stop("the archiver", _LEFT) as stop:
        opened = wait_for_redis(partial(open_log, arguments), stop, deadline_s, tell)
        if opened is None:
            raise ArchiveUnfinishedError(
                "the run ended before Redis answered; what is there to archive is in Redis, where "
                "the next run finds it",
                troubles=(),
                abandoned=False,
            )
        # Before, `tell` says why nothing is archived.
        with opened as log, recorded.continuous(arguments, log, key, run) as did:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            reports = log.archive_continuously(
                arguments.topics or None,
                stop=stop,
                max_duration=None if left_s is None else timedelta(seconds=left_s),
                tell=TroubleRows(log.place.cold, log.place.naming_status, key=key, run=run)
                if log.place.cold
                else None,
                cleaned=did.append if arguments.cleanup else None,
            )
            for report in reports:
                did.append(report)
                if arguments.output == "json":
                    yield from _rows(report)
                else:
                    yield Message(str(report))


def _rows(report: ArchiveReport) -> list[dict[str, Any]]:
    return [
        {
            "topic": report.topic,
            "partition": done.topic_partition.partition,
            "start_offset": done.start_offset,
            "end_offset": done.end_offset,
            "records": done.records,
            "size_bytes": done.size_bytes,
            "files": done.files,
            "duration_ms": round(done.seconds * 1000),
            "engine": engine_names(report.engines),
            **({"unparsed": done.unparsed} if report.unparsed else {}),
        }
        for done in report.partitions
    ]


def max_duration(text: str | None) -> timedelta | None:
    """What ``--max-duration`` says.

    Raises:
        InvalidArgumentError: not a time.
    """
    from datetime import timedelta

    from ..base.unit_text import duration_ms
    from ..errors import InvalidArgumentError

    if text is None:
        return None
    found_ms = duration_ms(text)
    if found_ms is None:
        raise InvalidArgumentError(f"--max-duration {text!r} should read 30s, 10m, 8h or 2d")
    return timedelta(milliseconds=found_ms)

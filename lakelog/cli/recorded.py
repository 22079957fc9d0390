"""What commands leave in the list of runs: see `lakelog history`."""

from __future__ import annotations

import argparse
import logging
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from .options import parse_duration
from .output import describe

if TYPE_CHECKING:
    import threading
    from datetime import timedelta

    import pyarrow as pa

    from ..archive.report import Trouble
    from ..jobs.run_record import GroupRows, RunRecord
    from ..jobs.status_rows import Report
    from ..jobs.status_table import StatusTable
    from ..lakelog import Lakelog
    from ..place import LogPlace

logger = logging.getLogger(__name__)

#: Where the log is and how to answer is left out: it is the log's own, and a URL may have a secret.
_LEFT_OUT = (
    "--dir",
    "--redis",
    "--cold",
    "--location",
    "--keyspace",
    "--tenant",
    "--password-ref",
    "--storage-option",
    "--engine",
    "--output",
)

#: What may name a person is not kept where nobody could erase it.
_HIDDEN = ("--key", "--where")

#: Where a key is said to be: who writes the key itself there has it refused, and not kept.
_REFERENCES = re.compile(r"(lakelog\.(?:log\.)?encryption\.key\s*=\s*)(.+)", re.DOTALL)
_REFERENCE_OPTION = "--wrap-with"

_END_TIMEOUT_S = 1.0  # of the last rows of a continuous run

_LONGEST = 500  # characters of a command that are kept

L = TypeVar("L", bound="Lakelog")


def begin(arguments: argparse.Namespace, log: Lakelog) -> None:
    """Begins the record of a command that has one, now that its log is open."""
    job = getattr(arguments, "recorded", None)
    if getattr(arguments, "record", None) is not None:  # its log was opened once more
        return
    if job is None or getattr(arguments, "dry_run", False) or log.place.cold is None:
        return
    from ..jobs.run_record import RunRecord
    from ..jobs.status_rows import RunKey, RunOf
    from ..operate.who import who

    place = log.place
    run = RunOf(who(), said(arguments.argv))
    arguments.record = RunRecord(lambda: _table(place), RunKey.unnamed(job), run).begin()


class ContinuousRun:
    """A command that goes on until it is told to stop, or its time is over; and what it leaves in
    the list of runs, also before Redis answers.
    """

    def __init__(self, arguments: argparse.Namespace, job: str) -> None:
        from ..jobs.status_rows import RunKey, RunOf
        from ..operate.who import who

        self._deadline_s = None
        if arguments.max_duration is not None:
            shape = "30s, 10m, 8h or 2d"
            lasts = parse_duration("--max-duration", arguments.max_duration, shape)
            self._deadline_s = time.monotonic() + lasts.total_seconds()
        self._arguments = arguments
        self.key = RunKey.unnamed(job)
        self.run = RunOf(who(), said(arguments.argv))
        arguments.recorded = None  # it leaves rows of its own
        # Its threads are left running, and an orderly end of the interpreter unloads the stores'
        # libraries while some threads are still in them: a crash instead of an exit code.
        arguments.abandoned = True

    def opened(
        self,
        connect: Callable[[argparse.Namespace], L],
        stop: threading.Event,
        tell: Callable[[Sequence[Trouble]], None] | None = None,
        *,
        what: str,
    ) -> L | None:
        """The log, once Redis answers; see `wait_for_redis`."""
        from ..archive.watchers import wait_for_redis

        connected = partial(connect, self._arguments)
        return wait_for_redis(connected, stop, self._deadline_s, tell, what=what)

    def left(self) -> timedelta | None:
        """Until its time is over; None: it has none."""
        from datetime import timedelta

        if self._deadline_s is None:
            return None
        return timedelta(seconds=max(0.0, self._deadline_s - time.monotonic()))

    @contextmanager
    def recorded(self, log: Lakelog) -> Iterator[list[Report]]:
        """Records where partitions stand once a minute, and what was done since, which is appended
        to the list that this gives; at the end, too.
        """
        from ..jobs.run_record import ROWS_INTERVAL_S, GroupRows, RunRecord
        from ..jobs.status_rows import DONE, FAILED, RUNNING

        did: list[Report] = []
        groups = GroupRows()
        place = log.place
        if place.cold is None:
            yield did
            return

        def look(result: str = RUNNING, error: str | None = None) -> pa.Table:
            reports = [did.pop(0) for _ in range(len(did))]
            return _rows(record, log, self._arguments, reports, result, error, groups)

        record = RunRecord(
            lambda: _table(place), self.key, self.run, look=look, written=groups.confirm
        )
        with record:
            try:
                yield did
            except Exception as error:
                record.write_in_time(partial(look, FAILED, describe(error)), ROWS_INTERVAL_S)
                raise
            # It was told to stop, and ends within three seconds of that.
            record.write_in_time(partial(look, DONE), _END_TIMEOUT_S)


def end(arguments: argparse.Namespace, result: str, error: str | None = None) -> None:
    """Ends the record of a command, if it has one."""
    record: RunRecord | None = getattr(arguments, "record", None)
    if record is None:
        return
    from ..jobs.run_record import ROWS_INTERVAL_S, STOP_TIMEOUT_S
    from ..jobs.status_rows import STOPPED

    stopped = result == STOPPED
    record.end(result, error, timeout_s=STOP_TIMEOUT_S if stopped else ROWS_INTERVAL_S)


def partitions(
    arguments: argparse.Namespace,
    log: Lakelog,
    reports: Iterable[Report],
    error: str | None = None,
) -> None:
    """Ends the record of a command with rows of where partitions stand, and of what it did."""
    record: RunRecord | None = getattr(arguments, "record", None)
    if record is None:
        return
    from ..errors import LakelogError
    from ..jobs.run_record import GroupRows
    from ..jobs.status_rows import DONE, FAILED

    result = DONE if error is None else FAILED
    try:
        rows = _rows(record, log, arguments, list(reports), result, error, GroupRows())
    except LakelogError as failure:  # the work was done all the same
        logger.warning("where partitions stand cannot be told: %s", failure)
        rows = record.rows(result, error)
    record.write(rows)
    record.close()
    arguments.record = None


def _rows(
    record: RunRecord,
    log: Lakelog,
    arguments: argparse.Namespace,
    reports: Sequence[Report],
    result: str,
    error: str | None,
    groups: GroupRows,
) -> pa.Table:
    from ..jobs.status_rows import DONE, effects_of, status_rows, troubles_of

    return status_rows(
        record.key,
        log.status(arguments.topics or None),
        effects_of(reports),
        record.duration_s,
        done=result == DONE,
        error=error,
        troubles=troubles_of(reports, log.group_troubles()),
        groups=groups.look(log, arguments.topics or None),
        run=record.run,
        result=result,
    )


def said(argv: Sequence[str]) -> str:
    """A command as it was typed, without where the log is, and without keys of records."""
    text = shlex.join(["lakelog", *_kept(argv)])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _kept(argv: Sequence[str]) -> Iterator[str]:
    rest = iter(argv)
    for argument in rest:
        name, equals, _ = argument.partition("=")
        # argparse takes the beginning of a name for the whole of it.
        is_option = name.startswith("--") and len(name) > 2
        if argument == "--verbose":
            continue
        hidden = is_option and any(one.startswith(name) for one in _HIDDEN)
        if hidden or (is_option and any(one.startswith(name) for one in _LEFT_OUT)):
            if not equals:
                next(rest, None)
            if hidden:
                yield f"{name}=HIDDEN"
        elif is_option and _REFERENCE_OPTION.startswith(name):
            yield name
            yield _reference(argument.partition("=")[2] if equals else next(rest, ""))
        else:
            found = _REFERENCES.search(argument)
            yield (
                argument
                if found is None
                else (argument[: found.start()] + found[1] + _reference(found[2]))
            )


def _reference(text: str) -> str:
    """Where a key is, if that is what the text says."""
    from ..base.secret_reference import is_secret_reference  # not for `lakelog --help`

    return text if is_secret_reference(text.strip()) else "HIDDEN"


def _table(place: LogPlace) -> StatusTable | None:
    """The table; None where only a Spark could write it, and there is none: none is started."""
    from ..jobs.status_table import open_status_table
    from ..spark.open_session import session_there

    assert place.cold is not None  # see `begin`
    if place.cold.schema is not None and session_there() is None:
        return None
    return open_status_table(place.cold, place.naming_status)

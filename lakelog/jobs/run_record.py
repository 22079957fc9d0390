"""What a run leaves in the status table: that it goes on, what fails, how far groups are behind."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa

from ..archive.report import NOT_ARCHIVED, NOT_RECORDED, NOT_SHOWN, Trouble
from ..base import compute as pc
from ..engines.threads import watch
from ..errors import ColdTierUnavailableError
from ..lakelog import Lakelog
from ..operate.group_lag import GroupLag, GroupOffset, GroupPlace
from ..operate.status import Status
from ..place import ColdRoot
from .status_rows import RUNNING, SOME_RUN, RunKey, RunOf, status_rows
from .status_table import StatusTable, open_status_table

logger = logging.getLogger(__name__)

#: A run that left no row for three times as long counts as dead, see `history.SILENT`.
ROWS_INTERVAL_S = 60.0

#: A run that is over sooner leaves one row instead of two.
FIRST_ROW_S = 1.0

#: How long the last row of an interrupted run may take, which holds up whoever interrupted it.
STOP_TIMEOUT_S = 0.5


#: The job under which the command line writes troubles.
JOB = "archive --continuous"

#: A lasting trouble gets a row every minute; an older one may be over.
RECENT = timedelta(minutes=3)

T = TypeVar("T")


class RunRecord:
    """Writes a row when a run has gone on for a second, and one a minute from then on.

    A row that cannot be written is logged, the first of several in a row: it keeps nobody from the
    work. Thread-safe.

    Args:
        look: makes the rows while the run goes on; default: one that tells of the run alone.
        written: called when rows that `look` made are in the table.
        interval_s: 0: only the first one, as the run writes rows of its own.
    """

    def __init__(
        self,
        table: Callable[[], StatusTable | None],
        key: RunKey,
        run: RunOf,
        *,
        look: Callable[[], pa.Table] | None = None,
        written: Callable[[], None] = lambda: None,
        interval_s: float = ROWS_INTERVAL_S,
    ) -> None:
        self._table = table
        self.key = key
        self.run = run
        self._look = look or (lambda: self.rows(RUNNING))
        self._written = written
        self._interval_s = interval_s
        self._began_s = time.monotonic()
        self._over = threading.Event()
        self._fails = False  # as the last row did
        self._thread = threading.Thread(target=self._go_on, name="lakelog-run", daemon=True)

    def begin(self) -> RunRecord:
        """The run begins."""
        self._began_s = time.monotonic()
        self._thread.start()
        return self

    def close(self) -> None:
        """No more rows of a run that goes on; its last ones are written by the run, or `end`."""
        self._over.set()
        self._thread.join(ROWS_INTERVAL_S)

    def __enter__(self) -> RunRecord:
        return self.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None or issubclass(kind, Exception):
            self.close()
        else:  # Ctrl-C waits for nobody
            self._over.set()

    @property
    def duration_s(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began_s

    def rows(
        self, result: str, error: str | None = None, *, duration_s: float | None = None
    ) -> pa.Table:
        """The one row that tells of the run alone.

        Args:
            duration_s: since the run began; default: until now. 0: it begins.
        """
        if duration_s is None:
            duration_s = self.duration_s
        return status_rows(
            self.key, nothing_told(), {}, duration_s, error=error, run=self.run, result=result
        )

    def end(
        self, result: str, error: str | None = None, *, timeout_s: float = ROWS_INTERVAL_S
    ) -> None:
        """Write the last row of a run that has none of partitions."""
        self._over.set()
        self.write(self.rows(result, error), timeout_s)

    def write(self, rows: pa.Table, timeout_s: float = ROWS_INTERVAL_S) -> bool:
        """Write rows of the run; what fails is logged, and is False."""
        return self.write_in_time(lambda: rows, timeout_s)

    def write_in_time(
        self, look: Callable[[], pa.Table], timeout_s: float = ROWS_INTERVAL_S
    ) -> bool:
        """Make rows and write them, in that time; what fails is logged, and is False."""
        try:
            in_time(lambda: self._append(look()), timeout_s, "writing the rows of a run")
        except Exception as failure:
            level = logging.DEBUG if self._fails else logging.WARNING
            logger.log(level, "the run of %s is not in the list of runs: %s", self.key.job, failure)
            self._fails = True
            return False
        self._fails = False
        return True

    def _append(self, rows: pa.Table) -> None:
        table = self._table()
        if table is not None:
            table.append(rows)

    def _go_on(self) -> None:
        wait_s = FIRST_ROW_S
        while not self._over.wait(wait_s):
            if self.write_in_time(self._look):
                self._written()
            if not self._interval_s:
                return
            wait_s = self._interval_s


# -- what fails ------------------------------------------------------------------------------------


class TroubleRows:
    """Records troubles beside the tables, where they can be seen while Redis is away.

    Args:
        naming: see `LogPlace.naming_status`.
        key: of the run whose rows they are; default: one of its own.
    """

    def __init__(
        self,
        root: ColdRoot,
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        key: RunKey | None = None,
        run: RunOf = SOME_RUN,
    ) -> None:
        self._root = root
        self._naming = naming
        self._key = key or RunKey.unnamed(JOB)
        self._run = run
        self._began_s = time.monotonic()

    def __call__(self, troubles: Sequence[Trouble]) -> None:
        """Writes a row for each.

        Raises:
            ColdTierError: the table takes no commit.
        """
        duration_s = time.monotonic() - self._began_s
        rows = status_rows(
            self._key, nothing_told(), {}, duration_s, troubles=troubles, run=self._run
        )
        if rows.num_rows:
            open_status_table(self._root, self._naming).append(rows)


def recent_troubles(root: ColdRoot) -> list[dict[str, Any]]:
    """The newest row of each state of a topic (None: Redis) that archivers wrote of late.

    Raises:
        LakelogError: the table cannot be read.
    """
    since = datetime.now(timezone.utc) - RECENT
    rows = open_status_table(root).read(since)
    states = pa.array([NOT_ARCHIVED, NOT_SHOWN, NOT_RECORDED])
    found = rows.filter(pc.is_in(rows["state"], states)).to_pylist()
    newest = {(row["topic"] or "", row["state"]): row for row in found}
    return [newest[key] for key in sorted(newest)]


def nothing_told() -> Status:
    """A look that told nothing."""
    return Status((), (), time.time_ns() // 1_000_000)


# -- how far groups are behind ---------------------------------------------------------------------

#: How long a look may take while the run goes on.
LOOK_TIMEOUT_S = 120.0


class GroupRows:
    """What the rows of a run have told of groups."""

    def __init__(self) -> None:
        self._behind: frozenset[GroupPlace] | None = None
        self._told_all_s = float("-inf")
        self._chosen: list[GroupOffset] | None = None  # what is not written yet
        self._chosen_s = float("-inf")

    def look(self, log: Lakelog, topics: Sequence[str] | None) -> list[GroupLag]:
        """What the next rows tell; no run fails because that cannot be told."""
        if log.redis is None:
            return []
        try:
            return in_time(
                lambda: log.group_lags(topics, choose=self.choose),
                LOOK_TIMEOUT_S,
                "looking at how far groups are behind",
            )
        except Exception as failure:
            logger.warning("how far groups are behind cannot be told now: %s", failure)
            self.drop()
            return []

    def choose(self, seen: Sequence[GroupOffset]) -> list[GroupOffset]:
        """Those that the next rows tell."""
        self._chosen_s = time.monotonic()
        self._chosen = with_rows(seen, None if self._is_all() else self._behind)
        return self._chosen

    def confirm(self) -> None:
        """That the rows are written."""
        if self._chosen is None:
            return
        self._behind = now_behind(self._chosen, self._behind)
        if self._is_all():
            self._told_all_s = self._chosen_s
        self._chosen = None

    def drop(self) -> None:
        """That the rows will not be written."""
        self._chosen = None

    def _is_all(self) -> bool:
        return self._chosen_s - self._told_all_s >= TOLD_AGAIN_S


#: As many as the rows of 500 partitions. A thousand groups of ten partitions, all of them behind
#: and looked at once a minute, have 0.7 million rows a day, not 14.
MOST_ROWS = 500

#: How often a run tells all groups.
TOLD_AGAIN_S = 3600.0


def with_rows(
    seen: Sequence[GroupOffset], behind_before: Collection[GroupPlace] | None
) -> list[GroupOffset]:
    """Those that get a row, the most urgent first.

    Args:
        behind_before: which were behind by the rows before; None: all are to be told.
    """
    before = frozenset(behind_before or ())

    def has_turned(one: GroupOffset) -> bool:
        return bool(one.unread) != (one.place in before)

    told = [one for one in seen if behind_before is None or one.unread or one.place in before]
    if len(told) <= MOST_ROWS:
        return told
    told.sort(key=lambda one: -one.unread)
    ranks: dict[tuple[str, str], int] = {}

    def urgency(one: GroupOffset) -> tuple[bool, int]:
        group = one.group_id, one.group_type.value
        ranks[group] = rank = ranks.get(group, -1) + 1
        is_news = behind_before is not None and has_turned(one)
        return not is_news, rank

    urgencies = [urgency(one) for one in told]
    order = sorted(range(len(told)), key=lambda at: urgencies[at])  # stable: furthest behind first
    return [told[at] for at in order[:MOST_ROWS]]


def now_behind(
    told: Iterable[GroupOffset], before: Collection[GroupPlace] | None
) -> frozenset[GroupPlace]:
    """Which are behind by the rows that were written by now."""
    rows = {one.place: bool(one.unread) for one in told}
    kept = frozenset(before or ()) - rows.keys()
    return kept | {place for place, is_behind in rows.items() if is_behind}


# -- calls that may hang ---------------------------------------------------------------------------


def in_time(function: Callable[[], T], timeout_s: float, what: str) -> T:
    """What a function returns or raises. If it takes too long, it is left running.

    Args:
        what: begins the sentence, such as "looking at the topics".

    Raises:
        ColdTierUnavailableError: it did not return in time. It may still be running.
    """
    answers: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="lakelog-in-time", daemon=True)
    _left.add(thread)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not answers:
        raise ColdTierUnavailableError(
            f"{what} did not end within {timeout_s:g} s: a call to Redis or the store "
            "hangs. It is tried again; look at the store"
        )
    return answers[0]


class _Left:
    """Calls that may be left running, which the end of the process waits for."""

    def __init__(self) -> None:
        self._threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    def add(self, thread: threading.Thread) -> None:
        self._threads.add(thread)
        watch(self)

    def end(self) -> None:
        """See `threads.Crew`."""

    def is_in_call(self) -> bool:
        """See `threads.Crew`."""
        return any(thread.is_alive() for thread in list(self._threads))


_left = _Left()

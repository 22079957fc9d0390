"""What the runs of a log recorded: rows of partitions and of groups, and the list of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import groupby
from typing import Any

import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..lakelog import Lakelog
from ..values.arguments import checked_duration
from ..values.topic import topic_names
from .status_rows import DONE, FAILED, RUNNING, of_groups, of_partitions
from .status_table import open_status_table


def status_history(
    log: Lakelog,
    topics: Iterable[str] | None = None,
    *,
    past: timedelta = timedelta(days=7),
) -> pa.Table:
    """The rows of ``_lakelog_status`` but for those of groups, oldest first; none without a run.

    Args:
        topics: names, or one; None for all.
        past: how far back, by this machine's clock. Rows are kept for 30 days.

    Returns:
        The columns of `STATUS`.

    Raises:
        ColdTierError: the table cannot be read.
    """
    return _of_topics(of_partitions(_read(log, past)), topics)


def group_history(
    log: Lakelog,
    topics: Iterable[str] | None = None,
    *,
    past: timedelta = timedelta(days=7),
) -> pa.Table:
    """The rows of groups in ``_lakelog_status``, oldest first. Not every look tells every group.

    Args, Returns, Raises: as `status_history`.
    """
    return _of_topics(of_groups(_read(log, past)), topics)


def _read(log: Lakelog, past: timedelta) -> pa.Table:
    return open_status_table(log.place.cold).read(_now() - checked_duration("past", past))


def _of_topics(rows: pa.Table, topics: Iterable[str] | None) -> pa.Table:
    if topics is None:
        return rows
    return rows.filter(pc.is_in(rows["topic"], pa.array(topic_names(topics), pa.string())))


def run_history(log: Lakelog, *, past: timedelta = timedelta(days=7)) -> list[Run]:
    """The runs of jobs, notebooks and the command line, the oldest first.

    Args:
        past: as for `status_history`; of a run that began before, what it left since.

    Raises:
        ColdTierError: the table cannot be read.
    """
    now = _now()
    since = now - checked_duration("past", past)
    return runs_of(open_status_table(log.place.cold).read(since), now)


def _now() -> datetime:
    return datetime.now(timezone.utc)


# -- the list of runs ------------------------------------------------------------------------------

DIED = "died"

#: A run leaves a row each minute. One that left none for so long, and no last ones, is dead.
SILENT = timedelta(minutes=3)


class Run(Struct, frozen=True):
    """One run; repairs and retries that share a run id are one with it."""

    job: str
    run_id: str
    who: str | None  # None: an older lakelog recorded it
    what: str | None  # likewise
    began_at: datetime
    recorded_at: datetime  # its last rows
    result: str  # running, done, failed, stopped or died
    error: str | None  # of a run that failed
    topics: tuple[str, ...]  # that it has rows of
    #: That it archived, appended or dropped; None: not known, as it ended, or was cut off and done
    #: again, before it could say what it had done. What it committed is in the tables.
    records: int | None

    @property
    def duration(self) -> timedelta:
        """From its beginning to its last rows."""
        return self.recorded_at - self.began_at


def runs_of(rows: pa.Table, now: datetime) -> list[Run]:
    """The runs that left these rows, the oldest first.

    Args:
        rows: as `STATUS`.
        now: a run that is not over and has left no row for `SILENT` has died.
    """
    ordered = rows.sort_by(
        [("job", "ascending"), ("run_id", "ascending"), ("recorded_at", "ascending")]
    )
    found = [
        _run(job, run_id, list(group), now)
        for (job, run_id), group in groupby(
            ordered.to_pylist(), key=lambda row: (row["job"], row["run_id"])
        )
    ]
    return sorted(found, key=lambda run: (run.began_at, run.job, run.run_id))


def _run(job: str, run_id: str, rows: Sequence[dict[str, Any]], now: datetime) -> Run:
    last = rows[-1]
    result = _result(rows)
    if result == RUNNING and now - last["recorded_at"] > SILENT:
        result = DIED
    errors = [row["error"] for row in rows if row["error"] and _result_of(row) == FAILED]
    return Run(
        job,
        run_id,
        next((row["who"] for row in reversed(rows) if row["who"]), None),
        next((row["what"] for row in reversed(rows) if row["what"]), None),
        min(row["recorded_at"] - timedelta(milliseconds=row["duration_ms"] or 0) for row in rows),
        last["recorded_at"],
        result,
        errors[-1] if errors and result == FAILED else None,
        tuple(sorted({row["topic"] for row in rows if row["topic"]})),
        _records(rows),
    )


def _records(rows: Sequence[dict[str, Any]]) -> int | None:
    """The sum of what all attempts said; None if one of them said nothing of what it did.

    Rows of partitions say it: those at a run's end, and each minute those of a continuous one.
    """
    for attempt in _attempts(rows):
        ended_well = _result_of(attempt[-1]) in (DONE, FAILED)
        if not ended_well and all(row["partition"] is None for row in attempt):
            return None
    return sum(row["records"] or 0 for row in rows)


def _attempts(rows: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """The rows of each time that the run was begun: its duration then begins anew.

    Those that come after the run was done are no further attempt.
    """
    begun = 0
    for at, row in enumerate(rows):
        lasted_ms = row["duration_ms"] or 0
        begins = not lasted_ms and row["partition"] is None and _result_of(row) == RUNNING
        if at and (begins or lasted_ms < (rows[at - 1]["duration_ms"] or 0)):
            yield rows[begun:at]
            begun = at
        if _result_of(row) == DONE:
            break
    yield rows[begun : at + 1]


def _result(rows: Sequence[dict[str, Any]]) -> str:
    """That of the last rows, unless the run was done at any time: it is never done again."""
    results = [_result_of(row) for row in rows]
    return DONE if DONE in results else results[-1]


def _result_of(row: dict[str, Any]) -> str:
    if row["result"] is not None:
        return str(row["result"])
    # Rows of a lakelog that did not say it. Those of a topic in trouble have a state.
    if row["done"]:
        return DONE
    return FAILED if row["error"] and row["state"] in (None, "ok") else RUNNING

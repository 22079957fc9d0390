"""What the job runs of a log recorded, over time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

import pyarrow as pa

from ..base import compute as pc
from ..cold_log import ColdLog
from ..values.arguments import checked_duration
from ..values.topic import topic_names
from .runs import Run, runs_of
from .status_rows import of_groups, of_partitions
from .status_table import open_status_table


def status_history(
    log: ColdLog,
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
    log: ColdLog,
    topics: Iterable[str] | None = None,
    *,
    past: timedelta = timedelta(days=7),
) -> pa.Table:
    """The rows of groups in ``_lakelog_status``, oldest first. Not every look tells every group.

    Args, Returns, Raises: as `status_history`.
    """
    return _of_topics(of_groups(_read(log, past)), topics)


def _read(log: ColdLog, past: timedelta) -> pa.Table:
    return open_status_table(log.place.cold).read(_now() - checked_duration("past", past))


def _of_topics(rows: pa.Table, topics: Iterable[str] | None) -> pa.Table:
    if topics is None:
        return rows
    return rows.filter(pc.is_in(rows["topic"], pa.array(topic_names(topics), pa.string())))


def run_history(log: ColdLog, *, past: timedelta = timedelta(days=7)) -> list[Run]:
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

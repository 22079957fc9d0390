"""What a notebook says of groups: who is in them, how far they are behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..lakelog import Lakelog
from ..operate.group_lag import GroupLag
from .table_rows import TableRows

#: A table that is longer is of no use to anybody.
MOST_GROUPS = 100


def group_lags(lakelog: Lakelog, topics: Sequence[str] | None = None) -> TableRows:
    """A line for each group and topic, those furthest behind first; 100 at most.

    Args:
        topics: names; None for all.
    """
    by_topic: dict[tuple[str, str, str], list[GroupLag]] = {}
    for one in lakelog.group_lags(topics):
        key = one.group_id, one.group_type.value, one.topic_partition.topic
        by_topic.setdefault(key, []).append(one)
    rows = sorted(map(_row, by_topic.values()), key=_urgency)
    return TableRows(rows[:MOST_GROUPS], "No group has committed anything of these topics.")


def _row(lags: Sequence[GroupLag]) -> dict[str, object]:
    first = lags[0]
    return {
        "group": first.group_id,
        "type": first.group_type.value,
        "state": first.state.value,
        "members": first.members,
        "topic": first.topic_partition.topic,
        "partitions": len(lags),
        "lag_records": sum(one.lag_records for one in lags),
        "lag_ms": _longest(one.lag_ms for one in lags),
    }


def _longest(waits: Iterable[int | None]) -> int | None:
    return max((one for one in waits if one is not None), default=None)


def _urgency(row: dict[str, object]) -> tuple[int, int, str]:
    wait, records = row["lag_ms"], row["lag_records"]
    assert isinstance(records, int)
    return -(wait if isinstance(wait, int) else 0), -records, str(row["group"])

"""Which groups get rows in ``_lakelog_status``, so that there are never too many. Pure.

Rows are of a group in a partition. All get one at a run's first look, and every `TOLD_AGAIN_S`
after that. In between, those get one that are behind, and once more those that were behind and are
not any more. So a group that keeps up costs next to nothing, a line over time ends at zero, and
what has no row after a zero is still there.

No look leaves more than `MOST_ROWS`. If there would be more, first come those that have just fallen
behind or caught up, then of each group the partition that is furthest behind, then the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..operate.group_lag import GroupOffset, GroupPlace

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

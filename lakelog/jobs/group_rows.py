"""What the rows of a run have told of groups, and what the next ones tell."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Sequence

from ..cold_log import ColdLog
from ..lakelog import Lakelog
from ..operate.group_lag import GroupLag, GroupOffset, GroupPlace
from .run_record import in_time

logger = logging.getLogger(__name__)

#: How long a look may take while the run goes on.
LOOK_TIMEOUT_S = 120.0


class GroupRows:
    """What the rows of a run have told of groups."""

    def __init__(self) -> None:
        self._behind: frozenset[GroupPlace] | None = None
        self._told_all_s = float("-inf")
        self._chosen: list[GroupOffset] | None = None  # what is not written yet
        self._chosen_s = float("-inf")

    def look(self, log: ColdLog, topics: Sequence[str] | None) -> list[GroupLag]:
        """What the next rows tell; no run fails because that cannot be told."""
        if not isinstance(log, Lakelog):
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

"""What the rows of a run have told of groups, and what the next ones tell."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from ..cold_log import ColdLog
from ..lakelog import Lakelog
from ..operate.group_lag import GroupLag, GroupOffset, GroupPlace
from .group_rows import TOLD_AGAIN_S, now_behind, with_rows
from .in_time import in_time

logger = logging.getLogger(__name__)

#: How long a look may take while the run goes on.
LOOK_TIMEOUT_S = 120.0


class GroupsTold:
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

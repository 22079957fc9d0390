"""What the job runs of a log recorded, over time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.compute as pc

from ..cold_log import ColdLog
from .open_status_table import open_status_table


def status_history(
    log: ColdLog,
    topics: Iterable[str] | None = None,
    *,
    past: timedelta = timedelta(days=7),
) -> pa.Table:
    """The rows of ``_lakelog_status``, oldest first; none if no job ever ran.

    Args:
        topics: names; None for all.
        past: how far back, by this machine's clock. Rows are kept for 30 days.

    Returns:
        The columns of `STATUS`.

    Raises:
        ColdTierError: the table cannot be read.
    """
    rows = open_status_table(log.place.cold).read(datetime.now(timezone.utc) - past)
    if topics is None:
        return rows
    return rows.filter(pc.is_in(rows["topic"], pa.array(list(topics), pa.string())))

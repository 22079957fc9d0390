"""The troubles of a continuous archiver that is no job run, as rows of ``_lakelog_status``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pyarrow as pa

from ..archive.report import NOT_ARCHIVED, NOT_RECORDED, NOT_SHOWN, Trouble
from ..base import compute as pc
from ..operate.log_figures import LogFigures
from ..place import ColdRoot
from .status_rows import RunKey, RunOf, status_rows
from .status_table import open_status_table

#: The job under which the command line writes rows.
JOB = "archive --continuous"

#: A lasting trouble gets a row every minute; an older one may be over.
RECENT = timedelta(minutes=3)


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
        run: RunOf | None = None,
    ) -> None:
        self._root = root
        self._naming = naming
        self._key = key or RunKey(JOB, f"unnamed-{uuid4().hex}")
        self._run = run or RunOf()
        self._began_s = time.monotonic()

    def __call__(self, troubles: Sequence[Trouble]) -> None:
        """Writes a row for each.

        Raises:
            ColdTierError: the table takes no commit.
        """
        figures = LogFigures((), None, time.time_ns() // 1_000_000)
        duration_s = time.monotonic() - self._began_s
        rows = status_rows(self._key, figures, {}, duration_s, troubles=troubles, run=self._run)
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

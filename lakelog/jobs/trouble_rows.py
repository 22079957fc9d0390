"""The troubles of a continuous archiver that is no job run, as rows of ``_lakelog_status``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from ..archive.trouble import Trouble
from ..operate.standing import Standing
from ..spark.place import ColdRoot
from .open_status_table import open_status_table
from .status_rows import NOT_ARCHIVED, RunKey, status_rows

#: The job under which the command line writes rows.
JOB = "archive --continuous"

#: A lasting trouble gets a row every minute; an older one may be over.
RECENT = timedelta(minutes=3)


class TroubleRows:
    """Records troubles beside the tables, where they can be seen while Redis is away."""

    def __init__(self, root: ColdRoot) -> None:
        self._root = root
        self._key = RunKey(JOB, f"unnamed-{uuid4().hex}")
        self._began_s = time.monotonic()

    def __call__(self, troubles: Sequence[Trouble]) -> None:
        """Writes a row for each.

        Raises:
            ColdTierError: the table takes no commit.
        """
        standing = Standing((), None, time.time_ns() // 1_000_000)
        seconds = time.monotonic() - self._began_s
        rows = status_rows(self._key, standing, {}, seconds, troubles=troubles)
        if rows.num_rows:
            open_status_table(self._root).append(rows)


def recent_troubles(root: ColdRoot) -> list[dict[str, Any]]:
    """The newest row for each topic (None: Redis) that archivers wrote in the last minutes.

    Raises:
        LakelogError: the table cannot be read.
    """
    since = datetime.now(timezone.utc) - RECENT
    rows = open_status_table(root).read(since)
    found = rows.filter(pc.equal(rows["state"], pa.scalar(NOT_ARCHIVED))).to_pylist()
    newest = {row["topic"]: row for row in found}
    return [newest[topic] for topic in sorted(newest, key=lambda topic: topic or "")]

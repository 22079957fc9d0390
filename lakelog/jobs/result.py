"""A job's answer: where each partition stands, as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from ..base import compute as pc
from ..base.text_table import text_table
from ..lakelog import Lakelog
from ..operate.log_figures import figures_of
from .parameters import databricks_utilities
from .status_rows import RunKey, of_partitions, status_rows
from .table_rows import table_html

#: What a job's result says of a partition: where it stands, and nothing of the run, so that a run
#: that found everything done gives the same result.
RESULT = (
    "topic",
    "partition",
    "state",
    "log_start",
    "archived_end",
    "log_end",
    "archive_lag_records",
    "lost_offsets",
    "cold_segments",
)


class JobResult(dict[str, Any]):
    """``job`` and ``partitions``; shows the partitions as a table."""

    @classmethod
    def of(cls, job: str, rows: pa.Table) -> JobResult:
        """Where each partition stood in these rows, by topic and partition."""
        told = of_partitions(rows)
        told = told.filter(pc.is_valid(told["partition"]))  # others are about what failed
        ordered = told.sort_by([("topic", "ascending"), ("partition", "ascending")])
        return cls(job=job, partitions=ordered.select(list(RESULT)).to_pylist())

    def __repr__(self) -> str:
        if not self["partitions"]:
            return f"{self['job']}: no partitions"
        return text_table(self["partitions"], RESULT)

    def _repr_html_(self) -> str:
        if not self["partitions"]:
            return f"<p>{escape(repr(self))}</p>"
        return table_html(self["partitions"], RESULT)


class ResultLine(str):
    """JSON that a notebook shows as it is, below a table of what it says where HTML is shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        partitions = json.loads(self).get("partitions") or []
        columns = [name for name in RESULT if partitions and name in partitions[0]]
        return (
            f"{table_html(partitions, columns) if partitions else ''}<details><summary>as JSON"
            f'</summary><code style="overflow-wrap:anywhere">{escape(self)}</code></details>'
        )


def standing(lakelog: Lakelog, topics: Sequence[str] | None = None) -> JobResult:
    """Where things stand now, as the result of a job that does nothing else.

    Args:
        topics: names; None for all.

    Raises:
        LakelogError: that of the first topic whose state cannot be told.
    """
    found = figures_of(lakelog.status(topics))
    found.check()
    return JobResult.of("look", status_rows(RunKey("look", ""), found, {}, 0.0))


def finish(result: Mapping[str, Any]) -> ResultLine:
    """Ends a notebook: on Databricks with this result of the task, elsewhere by showing it.

    On Databricks, nothing after this call is run.
    """
    line = ResultLine(json.dumps(result, separators=(",", ":"), sort_keys=True))
    utilities = databricks_utilities()
    if utilities is not None:
        utilities.notebook.exit(str(line))
    return line

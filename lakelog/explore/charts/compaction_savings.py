"""What compaction took out of each partition: as runs report it, or as the index shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...cleanup.report import CleanupReport
from ...read.topic_log import TopicLog
from .. import words
from ..record_times import covered
from .look import COLD, GONE, MOST_LANES, TEXT, lanes, says
from .shown import (
    NULL,
    about,
    checked,
    described,
    drawn,
    int64,
    notes_of,
    partitions_of,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SAVINGS = pa.schema(
    [
        ("partition", pa.int32()),
        ("records_before", pa.int64()),
        ("records_after", pa.int64()),
        ("bytes_before", pa.int64()),
        ("bytes_after", pa.int64()),
    ]
)


def compaction_rows(log: TopicLog, partitions: Iterable[int] | None = None) -> pa.Table:
    """What all compactions so far left of the cold tier's records; reads no records.

    Args:
        partitions: numbers; None for all.

    Returns:
        Rows of `SAVINGS`, one for each partition with files above the log start. ``records_before``
        counts the offsets those files were made of (each was a record; lost ones are not counted),
        ``records_after`` the records in them. ``bytes_before`` is null, since the table's log
        forgets the size of removed files; `compaction_report_rows` knows it from runs' reports.

    Raises:
        LakelogError: a tier cannot be read.
    """
    asked = list(range(log.topic.partitions) if partitions is None else partitions)
    look = log.tiers().look(asked)
    rows = []
    unknown = []
    for partition in asked:
        files = look.cold.files.rows_of_partition(partition)
        files = files.filter(pc.greater(files["end_offset"], look.offsets[partition].log_start))
        if not files.num_rows:
            continue
        if pc.min(files["records"]).as_py() < 0:
            unknown.append(partition)
            continue
        rows.append(
            (
                partition,
                int(covered(files, look.hot[partition].gaps).sum()),
                pc.sum(files["records"]).as_py(),
                None,
                pc.sum(files["size_bytes"]).as_py(),
            )
        )
    notes = ["By the segment index: all compactions so far, of what is archived and not deleted."]
    if unknown:
        notes.append(f"Files of {words.names(unknown)} do not say how many records they hold.")
    return described(_table(rows), topic=log.topic.name, partitions=asked, notes=notes)


def compaction_report_rows(reports: Iterable[CleanupReport]) -> pa.Table:
    """What the compactions of some cleanup runs read and kept, to the byte.

    Args:
        reports: what `Lakelog.cleanup` gave, of one topic, in the order of the runs.

    Returns:
        Rows of `SAVINGS`, one for each compacted partition: "after" is what its last run kept,
        "before" is what would be there if none of these runs had dropped anything.
    """
    after: dict[int, tuple[int, int]] = {}
    dropped: dict[int, tuple[int, int]] = {}
    topics = []
    for report in reports:
        topics.append(report.topic)
        for one in report.compacted:
            partition = one.topic_partition.partition
            after[partition] = one.records_kept, one.bytes_kept
            records, size_bytes = dropped.get(partition, (0, 0))
            dropped[partition] = (
                records + one.records_dropped,
                size_bytes + one.bytes_dropped,
            )
    rows = [
        (
            partition,
            after[partition][0] + dropped[partition][0],
            after[partition][0],
            after[partition][1] + dropped[partition][1],
            after[partition][1],
        )
        for partition in sorted(after)
    ]
    note = f"By the reports of {words.count(len(topics), 'run')}: closed segments only."
    name = ", ".join(dict.fromkeys(topics))
    return described(_table(rows), topic=name, partitions=sorted(after), notes=[note])


def _table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SAVINGS)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, SAVINGS, strict=True)]
    return pa.table(arrays, schema=SAVINGS)


def compaction_savings(table: pa.Table) -> Figure:
    """Draws the share of each partition that compaction left, one row each.

    By bytes if all rows have ``bytes_before``, else by records.

    Args:
        table: as `compaction_rows` or `compaction_report_rows` gives it.

    Returns:
        A plotly Figure of two traces, what is left and what went, in percent. Their customdata are
        partition, records before, after, and bytes as text. A `PlainTable` where plotly is not
        installed.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    table = checked(table, SAVINGS, "compaction_rows or compaction_report_rows")
    seen = _Seen.of(table)
    message = about(table, seen.message())
    notes = notes_of(table)
    asked = [number for number in partitions_of(table) if number not in set(seen.partition)]
    if asked and len(seen.partition):
        notes.append(f"Nothing of {words.names(asked)} is archived.")
    return drawn(table, message, lambda: _draw(seen, message, notes))


class _Seen(Struct, frozen=True, eq=False):
    partition: list[int]
    records_before: np.ndarray[Any, Any]
    records_after: np.ndarray[Any, Any]
    bytes_before: np.ndarray[Any, Any]  # all `NULL` where one is
    bytes_after: np.ndarray[Any, Any]

    @classmethod
    def of(cls, table: pa.Table) -> _Seen:
        table = table.sort_by("partition")
        before = int64(table, "bytes_before")
        if (before == NULL).any():
            before = np.full(len(before), NULL)
        return cls(
            int64(table, "partition").tolist(),
            np.maximum(0, int64(table, "records_before")),
            np.maximum(0, int64(table, "records_after")),
            before,
            np.maximum(0, int64(table, "bytes_after")),
        )

    @property
    def by_bytes(self) -> bool:
        return bool(len(self.bytes_before)) and bool((self.bytes_before != NULL).all())

    @property
    def sides(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Before and after, in the unit that is drawn."""
        if self.by_bytes:
            return self.bytes_before, self.bytes_after
        return self.records_before, self.records_after

    def message(self) -> str:
        if not len(self.partition):
            return "nothing was compacted: there is no partition to compare"
        before, after = int(self.records_before.sum()), int(self.records_after.sum())
        if before == after:
            all_of_it = (
                "the one record is" if after == 1 else f"all {words.count(after)} records are"
            )
            return f"compaction removed nothing: {all_of_it} there"
        text = (
            f"compaction left {words.percent(after, before)} of the records, "
            f"{words.count(after)} of {words.count(before)}"
        )
        if self.by_bytes:
            sizes = int(self.bytes_before.sum()), int(self.bytes_after.sum())
            text += f"; {words.size(sizes[0])} became {words.size(sizes[1])}"
        if len(self.partition) > 1:
            whole, left = self.sides
            shares = left / np.maximum(1, whole)
            least = int(shares.argmax())
            if shares.max() - shares.min() > 0.1:
                share = words.percent(float(shares[least]), 1)
                text += f"; most is left of partition {self.partition[least]} ({share})"
        return text


def _draw(
    seen: _Seen, message: str, notes: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not len(seen.partition):
        return [], says(message, notes)
    before, after = seen.sides
    rows = np.arange(len(seen.partition))
    said = list(notes)
    if len(rows) > MOST_LANES:
        rows = np.sort(np.argsort(-before, kind="stable")[:MOST_LANES])
        said.append(
            f"The chart shows the largest {MOST_LANES} of {len(seen.partition):,} partitions. The "
            "table has all."
        )
    share = 100 * np.minimum(1, after[rows] / np.maximum(1, before[rows]))
    share = np.where(before[rows] == 0, 100, share)
    partitions = [seen.partition[row] for row in rows.tolist()]
    tell = words.size if seen.by_bytes else words.count
    texts = [f"{tell(int(before[row]))} → {tell(int(after[row]))}" for row in rows.tolist()]
    custom = [
        [
            seen.partition[row],
            int(seen.records_before[row]),
            int(seen.records_after[row]),
            words.size(int(seen.bytes_before[row])) if seen.by_bytes else "not known",
            words.size(int(seen.bytes_after[row])),
        ]
        for row in rows.tolist()
    ]
    what = "bytes" if seen.by_bytes else "records"
    look = lanes(message, said, partitions, texts, what, f"{what} left (% of those before)")
    look |= {"barmode": "stack"}
    look["legend"] |= {"traceorder": "normal"}
    look["xaxis"] |= {"range": [0, 100], "ticksuffix": " %"}
    common = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(rows))),
        "customdata": custom,
        "hovertemplate": (
            "partition %{customdata[0]}<br>%{customdata[1]:,} records before, "
            "<b>%{customdata[2]:,}</b> left<br>bytes: %{customdata[3]} before, "
            "%{customdata[4]} left<extra></extra>"
        ),
    }
    left = {"name": "left", "marker": {"color": COLD, "line": {"width": 0}}}
    gone = {
        "name": "removed by compaction",
        "marker": {
            "color": GONE,
            "line": {"width": 0},
            "pattern": {"shape": "/", "fgcolor": TEXT, "size": 8, "solidity": 0.12},
        },
    }
    return [
        {**common, **left, "x": [round(one, 3) for one in share.tolist()]},
        {**common, **gone, "x": [round(100 - one, 3) for one in share.tolist()]},
    ], look

"""What compaction took out of each partition: as runs report it, or as the index shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...base import compute as pc
from ...cleanup.report import CleanupReport
from ...read.topic_log import TopicLog
from .. import words
from ..record_times import covered
from .look import COLD, GONE, MOST_LANES, TEXT, lanes, says
from .shown import (
    about,
    checked,
    described,
    drawn,
    notes_of,
    partitions_asked,
    partitions_of,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_Row = dict[str, Any]  # of `SAVINGS`

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
        InvalidArgumentError: `log` is not the log of a topic.
        LakelogError: a tier cannot be read.
    """
    asked = partitions_asked("compaction_rows", log, partitions)
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
    rows: dict[int, list[int]] = {}  # partition → dropped records, kept, dropped bytes, kept
    topics = []
    for report in reports:
        topics.append(report.topic)
        for one in report.compacted:
            records, _, size_bytes, _ = rows.get(one.topic_partition.partition, [0] * 4)
            records, size_bytes = records + one.records_dropped, size_bytes + one.bytes_dropped
            rows[one.topic_partition.partition] = [
                *(records, one.records_kept),
                *(size_bytes, one.bytes_kept),
            ]
    table = _table(
        [
            (number, dropped + kept, kept, bytes_dropped + bytes_kept, bytes_kept)
            for number, (dropped, kept, bytes_dropped, bytes_kept) in sorted(rows.items())
        ]
    )
    note = f"By the reports of {words.count(len(topics), 'run')}: closed segments only."
    name = ", ".join(dict.fromkeys(topics))
    return described(table, topic=name, partitions=sorted(rows), notes=[note])


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
    rows = table.sort_by("partition").to_pylist()
    by_bytes = bool(rows) and all(row["bytes_before"] is not None for row in rows)
    message = about(table, _message(rows, by_bytes))
    notes = notes_of(table)
    drawn_here = {row["partition"] for row in rows}
    none = [number for number in partitions_of(table) if number not in drawn_here]
    if none and rows:
        notes.append(f"Nothing of {words.names(none)} is archived.")
    return drawn(table, message, lambda: _draw(rows, by_bytes, message, notes))


def _sides(row: _Row, by_bytes: bool) -> tuple[int, int]:
    """Before and after, in the unit that is drawn."""
    unit = "bytes" if by_bytes else "records"
    return max(0, row[f"{unit}_before"] or 0), max(0, row[f"{unit}_after"] or 0)


def _share(row: _Row, by_bytes: bool) -> float:
    before, after = _sides(row, by_bytes)
    return min(1.0, after / before) if before else 1.0


def _message(rows: Sequence[_Row], by_bytes: bool) -> str:
    if not rows:
        return "nothing was compacted: there is no partition to compare"
    before, after = (
        sum(sides) for sides in zip(*(_sides(row, False) for row in rows), strict=True)
    )
    if before == after:
        is_there = "the one record is" if after == 1 else f"all {words.count(after)} records are"
        return f"compaction removed nothing: {is_there} there"
    text = (
        f"compaction left {words.percent(after, before)} of the records, "
        f"{words.count(after)} of {words.count(before)}"
    )
    if by_bytes:
        was, left = (sum(sides) for sides in zip(*(_sides(row, True) for row in rows), strict=True))
        text += f"; {words.size(was)} became {words.size(left)}"
    shares = {row["partition"]: _share(row, by_bytes) for row in rows}
    if max(shares.values()) - min(shares.values()) > 0.1:
        most = max(shares, key=lambda number: shares[number])
        share = words.percent(shares[most], 1)
        text += f"; most is left of partition {most} ({share})"
    return text


def _draw(
    rows: Sequence[_Row], by_bytes: bool, message: str, notes: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not rows:
        return [], says(message, notes)
    said = list(notes)
    if len(rows) > MOST_LANES:
        said.append(
            f"The chart shows the largest {MOST_LANES} of {len(rows):,} partitions. The table has "
            "all."
        )
        largest = sorted(rows, key=lambda row: -_sides(row, by_bytes)[0])[:MOST_LANES]
        rows = sorted(largest, key=lambda row: row["partition"])
    tell = words.size if by_bytes else words.count
    texts = [" → ".join(map(tell, _sides(row, by_bytes))) for row in rows]
    what = "bytes" if by_bytes else "records"
    partitions = [row["partition"] for row in rows]
    look = lanes(message, said, partitions, texts, what, f"{what} left (% of those before)")
    look |= {"barmode": "stack"}
    look["legend"] |= {"traceorder": "normal"}
    look["xaxis"] |= {"range": [0, 100], "ticksuffix": " %"}
    common = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(rows))),
        "customdata": [
            [
                row["partition"],
                row["records_before"],
                row["records_after"],
                words.size(row["bytes_before"]) if by_bytes else "not known",
                words.size(row["bytes_after"] or 0),
            ]
            for row in rows
        ],
        "hovertemplate": (
            "partition %{customdata[0]}<br>%{customdata[1]:,} records before, "
            "<b>%{customdata[2]:,}</b> left<br>bytes: %{customdata[3]} before, "
            "%{customdata[4]} left<extra></extra>"
        ),
    }
    hatched = {"shape": "/", "fgcolor": TEXT, "size": 8, "solidity": 0.12}
    left = {"color": COLD, "line": {"width": 0}}
    gone = {"color": GONE, "line": {"width": 0}, "pattern": hatched}
    shares = [round(100 * _share(row, by_bytes), 3) for row in rows]
    return [
        {**common, "name": "left", "marker": left, "x": shares},
        {
            **common,
            "name": "removed by compaction",
            "marker": gone,
            "x": [round(100 - share, 3) for share in shares],
        },
    ], look

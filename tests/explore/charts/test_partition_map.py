"""The partition map: every offset has one place, and the picture says where and how many."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidArgumentError
from lakelog.explore.charts import partition_map, partition_ranges
from lakelog.explore.charts.partition_map import RANGES, fitted_widths, placed
from lakelog.explore.charts.shown import described
from lakelog.values.offsets import LogOffsets
from lakelog.values.topic_partition import OffsetRange

pytest.importorskip("plotly")


def ranges(offsets: dict[int, LogOffsets], waiting_ms: int | None = None) -> pa.Table:
    rows = [
        {
            "partition": number,
            "kind": one.kind,
            "start_offset": one.start_offset,
            "end_offset": one.end_offset,
            "waiting_ms": waiting_ms if one.kind == "hot" else None,
        }
        for number, log in offsets.items()
        for one in placed(log)
    ]
    schema = RANGES.append(pa.field("waiting_ms", pa.int64()))
    table = pa.Table.from_pylist(rows, schema=schema)
    return described(table, topic="orders", partitions=list(offsets))


def drawn(figure: Any) -> list[tuple[str, int, int, int]]:
    """(kind, partition, start, end) of every bar."""
    return sorted(
        (trace.name.split()[0], *map(int, row[:3]))
        for trace in figure.data
        for row in trace.customdata
    )


offset = st.integers(0, 60)


@given(offset, offset, offset, offset, st.lists(st.tuples(offset, offset), max_size=2))
def test_every_offset_lies_in_exactly_one_place(a, b, c, end, gaps):
    log = LogOffsets(a, max(a, b), c, max(end, a, c), True, tuple(OffsetRange(*g) for g in gaps))
    found = placed(log)

    assert [one.start_offset for one in found] == [0, *(one.end_offset for one in found)][:-1]
    assert (found[-1].end_offset if found else 0) == log.log_end
    assert all(x.kind != y.kind for x, y in itertools.pairwise(found))
    for one in found:
        for at in range(one.start_offset, one.end_offset):
            skipped = any(gap.start <= at < gap.end for gap in log.gaps)
            cold, hot = at < log.archived_end, at >= log.local_log_start
            assert one.kind == (
                "deleted"
                if at < log.log_start
                else "skipped"
                if skipped
                else {(1, 1): "both", (1, 0): "cold", (0, 1): "hot", (0, 0): "missing"}[cold, hot]
            )


def test_the_ranges_of_a_log_in_both_tiers(full):
    full.log.raise_log_start(0, 50)

    table = partition_ranges(full.log)

    rows = table.select(RANGES.names).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, "deleted", 0, 50),
        (0, "cold", 50, 200),
        (0, "both", 200, 300),
        (0, "hot", 300, 400),
    ]
    assert table["waiting_ms"].to_pylist()[:3] == [None, None, None]
    assert table["waiting_ms"].to_pylist()[3] >= 0


def test_what_was_skipped_after_an_unclean_stop_is_drawn_as_skipped(full, pass_ms):
    pass_ms(full.hot, 100)
    full.lose_tail()

    figure = partition_map(partition_ranges(full.log))

    (skipped,) = [row for row in drawn(figure) if row[0] == "skipped"]
    (gap,) = full.log.offsets()[0].gaps
    assert skipped == ("skipped", 0, *gap)
    assert gap.end > 1_000_000
    assert "partition 0 skipped offsets" in figure._message
    wide = {trace.name.split()[0]: trace.x[0] for trace in figure.data}
    assert wide["skipped"] <= 0.17  # millions of offsets do not squeeze the 400 flat


def test_bars_carry_the_exact_ranges_and_the_title_counts():
    table = ranges({0: LogOffsets(0, 70, 100, 100), 1: LogOffsets(10, 80, 90, 120)}, 125_000)

    figure = partition_map(table)

    assert drawn(figure) == [
        ("cold", 0, 0, 70),
        ("cold", 1, 10, 80),
        ("deleted", 1, 0, 10),
        ("hot", 1, 90, 120),
        ("in", 0, 70, 100),
        ("in", 1, 80, 90),
    ]
    assert figure._message == (
        "orders: 86 % of 2 partitions is archived; 30 offsets in Redis alone, the oldest for "
        "2 min 5 s, most in partition 1 (30)"
    )


@given(st.lists(st.tuples(st.integers(1, 2**53), st.booleans()), min_size=1, max_size=30))
def test_a_fitted_row_is_full_and_shows_every_range(pieces):
    lengths = np.array([length for length, _ in pieces], float)
    gone = np.array([is_gone for _, is_gone in pieces])

    widths = fitted_widths(lengths, gone)

    assert widths.sum() == pytest.approx(1)
    assert widths.min() >= min(0.012, 0.5 / len(pieces)) * 0.999


def test_nothing_appended_is_said(bench):
    figure = partition_map(partition_ranges(bench.log))
    assert not figure.data
    assert figure.layout.title.text == "<b>orders: 1 partition, nothing was appended yet</b>"


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ({0: LogOffsets(0, 9, 9, 9)}, "100 % is archived, 9 offsets"),
        ({0: LogOffsets(0, 0, 0, 9)}, "0 % is archived; 9 offsets in Redis alone"),
        ({0: LogOffsets(0, 0, 0, 1)}, "0 % is archived; 1 offset in Redis alone"),
        ({0: LogOffsets(0, 500, 0, 1000)}, "partition 0 misses offsets"),
        ({0: LogOffsets(9, 9, 9, 9)}, "all that 1 partition held is deleted"),
        (
            {n: LogOffsets(0, 5, 5, 6 + n) for n in range(3)},
            "71 % of 3 partitions is archived; 6 offsets in Redis alone, most in partition 2 (3)",
        ),
        (
            {n: LogOffsets(0, 0, 998 + 2 * (n == 0), 1000) for n in range(4)},
            "99.8 % of 4 partitions is archived; 6 offsets in Redis alone, most in partition 1 (2)",
        ),
    ],
)
def test_the_title_says_what_is_to_be_seen(offsets, said):
    assert said in partition_map(ranges(offsets))._message


def test_a_thousand_partitions_are_those_that_matter_and_a_note():
    logs = {n: LogOffsets(0, 90, 100 if n % 2 else 95, 100) for n in range(1000)}
    figure = partition_map(ranges(logs))

    shown = {row[1] for row in drawn(figure)}
    assert len(shown) == 300
    assert all(number % 2 == 0 for number in shown)  # those with something in Redis alone
    assert "The chart shows 300 of 1,000 partitions" in figure.layout.title.text
    assert len(figure.to_json()) < 100_000


def test_a_table_with_other_columns_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"no column kind.*partition_ranges"):
        partition_map(pa.table({"partition": [1], "start_offset": [0], "end_offset": [1]}))

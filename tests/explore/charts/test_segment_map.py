"""The segment map: each segment once, where it lies in time and offset."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelog.explore.charts import segment_choices, segment_map, segment_rows
from lakelog.explore.charts.look import OffsetScale
from lakelog.explore.charts.segment_map import SEGMENTS
from lakelog.explore.charts.shown import described
from lakelog.operate.segments import segments

pytest.importorskip("plotly")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def rows(many: int, partition: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Segments of 100 records and an hour each, cold."""
    return [
        {
            "partition": partition,
            "tier": "cold",
            "base_offset": 100 * n,
            "end_offset": 100 * n + 100,
            "records": 100,
            "size_bytes": 1000,
            "first_timestamp": START + timedelta(hours=n),
            "max_timestamp": START + timedelta(hours=n + 1),
            "compacted": 0.0,
            "state": "closed",
            **more,
        }
        for n in range(many)
    ]


def table(found: list[dict[str, Any]]) -> pa.Table:
    made = pa.Table.from_pylist(found, schema=SEGMENTS)
    return described(made, topic="orders", partitions=sorted({row["partition"] for row in found}))


def seekable(figure: Any) -> list[tuple[int, int]]:
    """(partition, base offset) that a click on each dot or bar would give."""
    return sorted(
        (row[0], row[1])
        for trace in figure.data
        if trace.customdata is not None
        for row in trace.customdata
    )


def test_the_rows_are_those_of_the_list_of_segments(full):
    found = segment_rows(full.log).to_pylist()

    listed = segments(full.log)
    assert [
        (row["tier"], row["base_offset"], row["end_offset"], row["records"], row["size_bytes"])
        for row in found
    ] == [
        (one.tier, one.base_offset, one.end_offset, one.records, one.size_bytes) for one in listed
    ]
    assert [row["state"] for row in found] == [one.state for one in listed]
    assert [round(row["max_timestamp"].timestamp() * 1000) for row in found] == [
        one.max_timestamp_ms for one in listed
    ]
    assert {row["compacted"] for row in found} == {0.0}


def test_a_segment_in_both_tiers_is_one_box_up_to_where_cold_ends(full):
    boxes = {
        row[1]: (row[2], row[3])
        for trace in segment_map(segment_rows(full.log)).data
        if trace.customdata is not None
        for row in trace.customdata
    }
    edges = sorted(boxes)
    assert [boxes[base][0] for base in edges] == [*edges[1:], 400]  # no overlap, no hole
    places = {base: place for base, (_, place) in boxes.items()}
    assert places[0] == "cold"
    assert places[300] == "hot alone"
    assert "in both tiers" in places.values()


def test_what_redis_trimmed_of_a_segment_is_in_the_cold_tier_alone():
    (cold,) = rows(1, start_offset=0)
    hot = {**cold, "tier": "hot", "end_offset": 150, "records": 50, "start_offset": 100}
    schema = SEGMENTS.append(pa.field("start_offset", pa.int64()))
    made = pa.Table.from_pylist([cold, hot], schema=schema)
    made = described(made, topic="orders", partitions=[0])

    labels = [label for label, _ in segment_choices(made)]

    assert [label.rpartition(", ")[0].rpartition(",")[0] for label in labels] == [
        "[100, 150) hot",
        "[0, 100) cold",
    ]


def test_what_compaction_took_is_left_empty():
    found = rows(2)
    found[0] |= {"records": 25, "compacted": 0.75}
    figure = segment_map(table(found))

    hollow, full = (trace for trace in figure.data if trace.mode == "lines")
    assert list(hollow.y[:5]) == [0, 0, 100, 100, 0]
    assert list(full.y[:5]) == [0, 0, 25, 25, 0]
    assert list(full.y[6:11]) == [100, 100, 200, 200, 100]
    assert "compaction left 62 % of cold" in figure._message


def test_boxes_begin_and_end_with_their_timestamps_and_dots_grow_with_bytes():
    found = rows(2)
    found[1] |= {"size_bytes": 4000}
    figure = segment_map(table(found))

    box, dots = figure.data
    first_ms = START.timestamp() * 1000
    assert [box.x[0], box.x[1]] == [first_ms, first_ms + 3_600_000]
    small, large = dots.marker.size
    assert large - 3 == pytest.approx(2 * (small - 3))  # the area, not the diameter
    assert dots.customdata[1][5] == "3.9 KiB cold"


def test_a_dot_that_would_hide_its_box_is_there_for_the_pointer_alone():
    _, few = segment_map(table(rows(2))).data
    _, many = segment_map(table(rows(100))).data

    assert set(few.marker.opacity) == {0.8}
    assert set(many.marker.opacity) == {0}
    assert len(many.customdata) == 100


def test_a_lost_tail_does_not_squeeze_the_offsets_flat():
    base = np.array([0, 100, 200 + 2**24])
    scale = OffsetScale.of(base, base + 100)

    assert scale.jumps.tolist() == [[200, 200 + 2**24]]
    drawn = scale.drawn(np.array([0, 100, 200, 200 + 2**24, 300 + 2**24])).tolist()
    assert drawn == [0, 100, 200, 218, 318]
    ticks = dict(zip(scale.ticks()["tickvals"], scale.ticks()["ticktext"], strict=True))
    assert ticks[100] == "100"
    assert "16,777,416" in ticks.values() or "16,777,450" in ticks.values()


def test_a_wrong_clock_does_not_squeeze_the_time_flat():
    found = rows(30)
    found[7]["max_timestamp"] = datetime(2099, 1, 1, tzinfo=timezone.utc)
    figure = segment_map(table(found))

    low, high = figure.layout.xaxis.range
    assert high < datetime(2026, 1, 4, tzinfo=timezone.utc).timestamp() * 1000
    assert low < high
    assert "1 segment reaches far outside the time shown" in figure.layout.title.text


def test_segments_without_timestamps_are_counted():
    found = rows(3)
    found[1] |= {"first_timestamp": None, "max_timestamp": None}
    figure = segment_map(table(found))
    assert seekable(figure) == [(0, 0), (0, 200)]
    assert "1 segment without timestamps cannot be placed" in figure.layout.title.text

    figure = segment_map(table([row | {"max_timestamp": None} for row in rows(2)]))
    assert not figure.data


def test_of_more_than_six_partitions_those_with_most_segments_are_drawn():
    figure = segment_map(table([row for n in range(8) for row in rows(3 - (n in (1, 4)), n)]))

    assert seekable(figure) == [(n, base) for n in (0, 2, 3, 5, 6, 7) for base in (0, 100, 200)]
    assert "The chart shows 6 of 8 partitions" in figure.layout.title.text


def test_thousands_of_segments_stay_small():
    many, partitions = 10_000, 3
    one = table(rows(many))
    large = pa.concat_tables(
        one.set_column(0, "partition", pa.array([n] * many, pa.int32())) for n in range(partitions)
    )
    figure = segment_map(large)

    assert len(figure.to_json()) < 1_000_000
    assert "neighbouring segments are drawn as one: 30,000" in figure.layout.title.text
    covered = {}
    for trace in figure.data:
        for row in trace.customdata or ():
            covered[row[0]] = covered.get(row[0], 0) + row[4]
    assert covered == dict.fromkeys(range(partitions), 100 * many)  # none is left out


def test_an_empty_log_says_so(bench):
    figure = segment_map(segment_rows(bench.log))
    assert not figure.data
    assert "no segments in 1 partition: nothing was appended yet" in figure.layout.title.text


def test_choices_seek_to_what_can_be_read(full):
    full.log.raise_log_start(0, 50)
    choices = segment_choices(segment_rows(full.log))

    assert len({label for label, _ in choices}) == len(choices)
    for _, (partition, offset) in choices:
        found = full.log.fetch(partition, offset)
        assert found.records["offset"][0].as_py() == offset
    assert choices[-1][1] == (0, 50)
    assert choices[0][0].startswith("[")
    assert "hot" in choices[0][0]
    assert len(segment_choices(segment_rows(full.log), most=2)) == 2
    assert segment_choices(segment_rows(full.log), 7) == []

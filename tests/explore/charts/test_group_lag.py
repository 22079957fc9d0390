"""The lag of groups over time, of rows of the status table."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.explore.charts.lag import GROUP_LAGS, group_lag

pytest.importorskip("plotly")
START = datetime(2026, 3, 1, tzinfo=timezone.utc)
MINUTE_MS = 60_000


def row(minute: float, group: str | None, records: int, partition: int = 0, **more: Any) -> Any:
    """A group's row: each record it is behind has waited for a minute."""
    return {
        "group_id": group,
        "group_type": group and "classic",
        "topic": "orders",
        "partition": partition,
        "recorded_at": START + timedelta(minutes=minute),
        "group_lag_records": None if group is None else records,
        "group_lag_ms": records * MINUTE_MS if records else None,
        **more,
    }


def table(*rows: Any) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=GROUP_LAGS)


def points(trace: Any) -> list[tuple[float, float | None]]:
    """Minutes since the start, and heights."""
    start_ms = START.timestamp() * 1000
    return [((x - start_ms) / MINUTE_MS, y) for x, y in zip(trace.x, trace.y, strict=True)]


def test_a_line_is_the_longest_wait_of_the_partitions_or_the_sum_of_their_records():
    rows = [
        row(minute, "nightly", lag * (partition + 1), partition)
        for minute, lag in enumerate([1, 5, 2])
        for partition in (0, 1)
    ]
    (line,) = group_lag(table(*rows)).data
    assert points(line) == [(0, 2), (1, 10), (2, 4)]
    assert line.name == "nightly in orders"
    assert group_lag(table(*rows))._message == (
        "nightly in orders is 4 min behind, at 2026-03-01 00:02:00 UTC; nightly in orders was 10 "
        "min behind at 2026-03-01 00:01:00"
    )
    (line,) = group_lag(table(*rows), by="records").data
    assert points(line) == [(0, 3), (1, 15), (2, 6)]
    assert "is 6 records behind" in group_lag(table(*rows), by="records")._message


def test_the_line_breaks_where_nobody_looked_and_where_the_group_went():
    minutes = [0, 1, 2, 3, 30, 31, 32, 33, 34, 35, 36, 37, 38]
    rows = [row(minute, "nightly", 3) for minute in minutes]
    gone = [row(minute, "gone", 9) for minute in (0, 1)]
    first, second = group_lag(table(*rows, *gone)).data
    assert first.name == "nightly in orders"  # the other is not known to be behind any more
    heights = [y for _, y in points(first)]
    assert heights == [3, 3, 3, 3, None, *[3] * 9]
    assert points(second) == [(0, 9), (1, 9)]
    assert first.connectgaps is False


def test_a_group_that_is_not_behind_stays_at_zero_until_it_is_told_again():
    live = [row(minute, "live", 1) for minute in range(60)]
    idle = [row(0, "idle", 0), row(40, "idle", 4), row(41, "idle", 0)]
    line = next(one for one in group_lag(table(*live, *idle)).data if one.name.startswith("idle"))
    assert points(line) == [(0, 0), (39, 0), (40, 4), (41, 0), (59, 0)]


def test_a_zero_does_not_hold_for_ever():
    rows = [row(0, "idle", 0), row(200, "idle", 0), *[row(m, "live", 1) for m in range(201)]]
    line = next(one for one in group_lag(table(*rows)).data if one.name.startswith("idle"))
    assert [y for _, y in points(line)] == [0, None, 0]


def test_a_wait_that_is_not_known_is_no_zero():
    rows = [row(0, "nightly", 3), row(1, "nightly", 3, group_lag_ms=None), row(2, "nightly", 3)]
    (line,) = group_lag(table(*rows)).data
    assert points(line) == [(0, 3), (1, None), (2, 3)]
    (line,) = group_lag(table(*rows), by="records").data
    assert points(line) == [(0, 3), (1, 3), (2, 3)]


def test_rows_of_partitions_are_passed_over():
    figure = group_lag(table(row(0, None, 0), row(0, "nightly", 2)))
    assert [trace.name for trace in figure.data] == ["nightly in orders"]
    assert figure.table.num_rows == 1


def test_groups_of_a_name_and_topics_are_told_apart():
    rows = [
        row(0, "jobs", 1),
        row(0, "jobs", 2, group_type="share"),
        row(0, "jobs", 3, topic="clicks"),
    ]
    assert [trace.name for trace in group_lag(table(*rows)).data] == [
        "jobs in clicks",
        "jobs (share group) in orders",
        "jobs in orders",
    ]


def test_of_many_groups_those_furthest_behind_are_drawn():
    rows = [row(minute, f"group-{n}", n * minute) for n in range(50) for minute in range(1000)]
    figure = group_lag(table(*rows))
    assert [trace.name.split()[0] for trace in figure.data] == [
        f"group-{n}" for n in (49, 48, 47, 46, 45, 44)
    ]
    assert all(len(trace.x) <= 400 for trace in figure.data)
    assert len(figure.to_json()) < 200_000
    assert "shows 6 of 50" in figure.layout.title.text
    assert ", the furthest of 49" in figure._message


def test_a_limit_is_drawn_and_those_above_it_are_counted():
    rows = [row(0, "late", 90), row(0, "early", 2)]
    figure = group_lag(table(*rows), limit_ms=60 * MINUTE_MS)
    assert figure.layout.shapes[0].y0 == 60  # minutes
    assert "1 of 2 were more than 1 h behind" in figure._message


def test_an_id_that_is_any_text_is_shown_as_it_is():
    figure = group_lag(table(row(0, "<b>a & b</b>" + "x" * 90, 1)))
    assert figure.data[0].name.startswith("&lt;b&gt;a &amp; b")
    assert len(figure.data[0].name) < 80
    assert "<b>a &" not in figure.layout.title.text


def test_nothing_is_behind_and_nothing_was_looked_at():
    assert "No group is known to be behind" in group_lag(table(row(0, "idle", 0)))._message
    figure = group_lag(GROUP_LAGS.empty_table())
    assert not figure.data
    assert "No run has looked at groups yet" in figure.layout.title.text


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidArgumentError, match="'time' or by 'records'"):
        group_lag(GROUP_LAGS.empty_table(), by="size")
    with pytest.raises(InvalidArgumentError, match="limit_ms"):
        group_lag(GROUP_LAGS.empty_table(), by="records", limit_ms=1)

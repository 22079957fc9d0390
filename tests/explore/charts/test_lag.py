"""The lag of archiving and of groups over time, of rows of the status table."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.explore.charts import archive_lag, group_lag
from lakelog.explore.charts.lag import GROUP_LAGS, LAGS

pytest.importorskip("plotly")
START = datetime(2026, 3, 1, tzinfo=timezone.utc)
MINUTE_MS = 60_000


def waits(minute: float, lag_ms: int | None, partition: int = 0, topic: str = "orders") -> Any:
    """A partition's row."""
    return {
        "topic": topic,
        "partition": partition,
        "recorded_at": START + timedelta(minutes=minute),
        "archive_lag_records": 10,
        "archive_lag_ms": lag_ms,
    }


def archive(*rows: Any, **options: Any) -> Any:
    return archive_lag(pa.Table.from_pylist(list(rows), schema=LAGS), **options)


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


def groups(*rows: Any, **options: Any) -> Any:
    return group_lag(pa.Table.from_pylist(list(rows), schema=GROUP_LAGS), **options)


def points(trace: Any) -> list[tuple[float, float | None]]:
    """Minutes since the start, and heights."""
    start_ms = START.timestamp() * 1000
    return [((x - start_ms) / MINUTE_MS, y) for x, y in zip(trace.x, trace.y, strict=True)]


# -- of archiving ----------------------------------------------------------------------------------


def test_the_bold_line_is_the_longest_wait_and_null_is_none():
    figure = archive(
        *(waits(0, (n + 1) * MINUTE_MS, n) for n in (0, 1)), *(waits(1, None, n) for n in (0, 1))
    )

    worst, first, second = figure.data
    assert list(worst.y) == [2, 0]  # minutes
    assert list(first.y) == [1, 0]
    assert [second.name, list(second.y)] == ["orders-1", [2, 0]]
    assert figure._message == (
        "Nothing waits to be archived at 2026-03-01 00:01:00 UTC; the longest wait was 2 min, at "
        "2026-03-01 00:00:00"
    )


def test_the_line_breaks_where_no_run_looked():
    (line,) = archive(*(waits(minute, MINUTE_MS) for minute in [0, 1, 2, 3, 30, 31])).data
    assert list(line.y) == [60, 60, 60, 60, None, 60, 60]
    assert line.connectgaps is False


def test_many_runs_of_many_partitions_keep_each_peak():
    peak = {(777, 33): 7 * 3_600_000}
    rows = (waits(m, peak.get((m, n)), n) for m in range(1_000) for n in range(100))
    figure = archive(*rows)

    (worst,) = figure.data  # a hundred lines would say nothing
    assert max(worst.y) == 7  # hours
    assert len(worst.y) <= 400
    assert len(figure.to_json()) < 100_000
    assert "The chart shows 334 of 1,000 moments" in figure.layout.title.text


def test_topics_are_told_apart():
    figure = archive(waits(0, MINUTE_MS), waits(0, MINUTE_MS, topic="payments"))
    assert [trace.name for trace in figure.data[1:]] == ["orders-0", "payments-0"]


# -- of groups -------------------------------------------------------------------------------------


def test_a_line_is_the_longest_wait_of_the_partitions_or_the_sum_of_their_records():
    rows = [
        row(minute, "nightly", lag * (partition + 1), partition)
        for minute, lag in enumerate([1, 5, 2])
        for partition in (0, 1)
    ]
    (line,) = groups(*rows).data
    assert points(line) == [(0, 2), (1, 10), (2, 4)]
    assert line.name == "nightly in orders"
    assert groups(*rows)._message == (
        "nightly in orders is 4 min behind, at 2026-03-01 00:02:00 UTC; nightly in orders was 10 "
        "min behind at 2026-03-01 00:01:00"
    )
    (line,) = groups(*rows, by="records").data
    assert points(line) == [(0, 3), (1, 15), (2, 6)]
    assert "is 6 records behind" in groups(*rows, by="records")._message


def test_the_line_breaks_where_nobody_looked_and_where_the_group_went():
    rows = [row(minute, "nightly", 3) for minute in [0, 1, 2, 3, *range(30, 39)]]
    first, second = groups(*rows, *(row(minute, "gone", 9) for minute in (0, 1))).data
    assert first.name == "nightly in orders"  # the other is not known to be behind any more
    assert [y for _, y in points(first)] == [3, 3, 3, 3, None, *[3] * 9]
    assert points(second) == [(0, 9), (1, 9)]


def test_a_group_that_is_not_behind_stays_at_zero_until_it_is_told_again_but_not_for_ever():
    live = [row(minute, "live", 1) for minute in range(60)]
    idle = [row(0, "idle", 0), row(40, "idle", 4), row(41, "idle", 0)]
    line = next(one for one in groups(*live, *idle).data if one.name.startswith("idle"))
    assert points(line) == [(0, 0), (39, 0), (40, 4), (41, 0), (59, 0)]
    rows = [row(0, "idle", 0), row(200, "idle", 0), *[row(m, "live", 1) for m in range(201)]]
    line = next(one for one in groups(*rows).data if one.name.startswith("idle"))
    assert [y for _, y in points(line)] == [0, None, 0]


def test_a_wait_that_is_not_known_is_no_zero():
    rows = [row(0, "nightly", 3), row(1, "nightly", 3, group_lag_ms=None), row(2, "nightly", 3)]
    assert points(groups(*rows).data[0]) == [(0, 3), (1, None), (2, 3)]
    assert points(groups(*rows, by="records").data[0]) == [(0, 3), (1, 3), (2, 3)]


def test_groups_of_a_name_and_topics_are_told_apart_and_other_rows_passed_over():
    figure = groups(
        row(0, None, 0),
        row(0, "jobs", 1),
        row(0, "jobs", 2, group_type="share"),
        row(0, "jobs", 3, topic="clicks"),
    )
    assert [trace.name for trace in figure.data] == [
        "jobs in clicks",
        "jobs (share group) in orders",
        "jobs in orders",
    ]
    assert figure.table.num_rows == 3


def test_of_many_groups_those_furthest_behind_are_drawn():
    rows = [row(minute, f"group-{n}", n * minute) for n in range(50) for minute in range(1000)]
    figure = groups(*rows)
    names = [f"group-{n}" for n in (49, 48, 47, 46, 45, 44)]
    assert [trace.name.split()[0] for trace in figure.data] == names
    assert all(len(trace.x) <= 400 for trace in figure.data)
    assert len(figure.to_json()) < 200_000
    assert "shows 6 of 50" in figure.layout.title.text
    assert ", the furthest of 49" in figure._message


def test_an_id_that_is_any_text_is_shown_as_it_is():
    figure = groups(row(0, "<b>a & b</b>" + "x" * 90, 1))
    assert figure.data[0].name.startswith("&lt;b&gt;a &amp; b")
    assert len(figure.data[0].name) < 80
    assert "<b>a &" not in figure.layout.title.text


# -- of both ---------------------------------------------------------------------------------------


def test_a_limit_is_drawn_and_what_lies_above_is_counted():
    figure = groups(row(0, "late", 90), row(0, "early", 2), limit_ms=60 * MINUTE_MS)
    assert figure.layout.shapes[0].y0 == 60  # minutes
    assert "1 of 2 were more than 1 h behind" in figure._message
    figure = archive(*(waits(m, m * MINUTE_MS) for m in range(4)), limit_ms=2 * MINUTE_MS)
    assert figure.layout.shapes[0].y0 == 2
    assert "above 2 min at 25 % of the moments" in figure._message


def test_nothing_is_behind_and_nothing_was_looked_at():
    assert "No group is known to be behind" in groups(row(0, "idle", 0))._message
    for figure, said in (
        (groups(), "No run has looked at groups yet"),
        (archive(), "No run has looked yet"),
    ):
        assert not figure.data
        assert said in figure.layout.title.text


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidArgumentError, match="'time' or by 'records'"):
        groups(by="size")
    with pytest.raises(InvalidArgumentError, match="limit_ms"):
        groups(by="records", limit_ms=1)

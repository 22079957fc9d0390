"""The archive lag over time, of rows of the status table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from lakelog.explore.charts import archive_lag
from lakelog.explore.charts.lag import LAGS

pytest.importorskip("plotly")
START = datetime(2026, 3, 1, tzinfo=timezone.utc)
MINUTE_MS = 60_000


def lags(
    lag_ms: Callable[[int, int], int | None], minutes: list[int], partitions: int = 2
) -> pa.Table:
    rows = [
        {
            "topic": "orders",
            "partition": partition,
            "recorded_at": START + timedelta(minutes=minute),
            "archive_lag_records": 10 * (minute + 1),
            "archive_lag_ms": lag_ms(minute, partition),
        }
        for minute in minutes
        for partition in range(partitions)
    ]
    return pa.Table.from_pylist(rows, schema=LAGS)


def test_the_bold_line_is_the_longest_wait_and_null_is_none():
    figure = archive_lag(
        lags(lambda minute, partition: None if minute == 1 else (partition + 1) * MINUTE_MS, [0, 1])
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
    figure = archive_lag(lags(lambda *_: MINUTE_MS, [0, 1, 2, 3, 30, 31], 1))

    (line,) = figure.data
    assert list(line.y) == [60, 60, 60, 60, None, 60, 60]
    assert line.connectgaps is False


def test_a_limit_is_drawn_and_what_lies_above_is_counted():
    figure = archive_lag(
        lags(lambda minute, _: minute * MINUTE_MS, [0, 1, 2, 3], 1), limit_ms=2 * MINUTE_MS
    )
    assert figure.layout.shapes[0].y0 == 2  # minutes
    assert "above 2 min at 25 % of the moments" in figure._message


def test_many_runs_of_many_partitions_keep_each_peak():
    peak = 7 * 3_600_000
    table = lags(lambda m, p: peak if (m, p) == (777, 33) else None, list(range(1_000)), 100)

    figure = archive_lag(table)

    (worst,) = figure.data  # a hundred lines would say nothing
    assert max(worst.y) == 7  # hours
    assert len(worst.y) <= 400
    assert len(figure.to_json()) < 100_000
    assert "The chart shows 334 of 1,000 moments" in figure.layout.title.text


def test_topics_are_told_apart():
    one = lags(lambda *_: MINUTE_MS, [0], 1)
    other = one.set_column(0, "topic", pa.array(["payments"]))
    figure = archive_lag(pa.concat_tables([one, other]))
    assert [trace.name for trace in figure.data[1:]] == ["orders-0", "payments-0"]


def test_no_rows_say_so():
    figure = archive_lag(LAGS.empty_table())
    assert not figure.data
    assert "No run has looked yet" in figure.layout.title.text

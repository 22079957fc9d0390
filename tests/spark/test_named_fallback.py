"""A table by name that cannot be read where it lies any more: Spark goes on where that ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from contract import ORDERS_0, ROWS, read
from made_up import archive

from lakelog.cold.by_name import either_view
from lakelog.cold.by_name.delta_actions import NotDirectError
from lakelog.cold.by_name.log_view import LogView
from lakelog.errors import ColdTierAccessError, ColdTierUnavailableError, MissingFileError
from lakelog.values.topic import Topic

pytestmark = pytest.mark.slow

TOPIC = Topic("orders", UUID("11111111-2222-3333-4444-555555555555"), partitions=3)
ENDS = (700, 1400, 2100)


@pytest.fixture
def table(make_named: Any) -> Any:
    made = make_named(TOPIC)
    for end in ENDS:
        made.apply(archive(TOPIC, made.snapshot(), end), made.snapshot())
    assert made.lies_at is not None
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the table takes for the time."""
    time = SimpleNamespace(now_s=1000.0)
    time.monotonic = lambda: time.now_s
    monkeypatch.setattr(either_view, "time", time)
    return time


def breaking_off(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[int]:
    """Reading where it lies gives one batch, then the error, and from then on the error alone."""
    really, tried = LogView.read, []

    def read_one(self: LogView, files: Any, start: int, *more: Any) -> Iterator[pa.RecordBatch]:
        tried.append(start)
        if len(tried) == 1:
            yield next(iter(really(self, files, start, *more)))
        raise error

    monkeypatch.setattr(LogView, "read", read_one)
    return tried


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ColdTierAccessError("403: the keys are not taken"), 2),  # new keys, once
        (NotDirectError("a feature that is not known"), 1),
        (MissingFileError("a file is gone"), 1),
    ],
    ids=["refused", "unknown", "missing"],
)
def test_spark_goes_on_where_the_direct_way_broke_off(
    table: Any,
    error: Exception,
    tries: int,
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    snapshot = table.snapshot()
    expected = ROWS.records(ORDERS_0, 0, ENDS[-1])
    caplog.set_level(logging.INFO, either_view.__name__)
    with monkeypatch.context() as broken:
        tried = breaking_off(broken, error)
        assert read(table, snapshot, 0, ENDS[-1]) == expected
        assert len(tried) == tries
        assert tried[0] == 0
        assert all(start == tried[1] > 0 for start in tried[1:])  # what was given is not read again
        (said,) = caplog.messages
        assert "is read through Spark, not where it lies" in said
        assert str(error) in said
        assert table.lies_at is None
        assert str(error) in table.by_spark_because
        # So it stays for a while, and nobody tries the other way.
        clock.now_s += either_view.SPARK_FOR_S - 1
        assert read(table, table.snapshot(), 0, ENDS[-1]) == expected
        assert len(tried) == tries
    clock.now_s += 1
    assert read(table, snapshot, 0, ENDS[-1]) == expected
    assert table.lies_at is not None
    assert table.by_spark_because == ""


def test_a_store_that_is_away_is_told_and_not_gone_around(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would not get on either, and the caller asks again."""
    snapshot = table.snapshot()
    with monkeypatch.context() as broken:
        breaking_off(broken, ColdTierUnavailableError("503"))
        with pytest.raises(ColdTierUnavailableError, match="503"):
            read(table, snapshot, 0, ENDS[-1])
    assert table.lies_at is not None
    assert read(table, snapshot, 0, ENDS[-1]) == ROWS.records(ORDERS_0, 0, ENDS[-1])

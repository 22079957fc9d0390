"""What tasks tell of the rows they write is what a query finds, or a query is asked."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from made_up import EPOCH_MS, MadeUpRows, archive
from msgspec.structs import replace

from lakelog.cold.by_name import measures as named_measures
from lakelog.cold.by_name import named_table as named_table
from lakelog.cold.by_name import view
from lakelog.cold.by_name.measures import MEASURE, Measuring, RangeMeasure, known, measured, parsed
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.by_name.notes import Slice
from lakelog.cold.change import HotRange
from lakelog.cold.segment import SegmentFile
from lakelog.values.config import TopicConfig
from lakelog.values.topic import Topic

pytestmark = pytest.mark.slow


def batch(start: int, end: int, *times_us: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "offset": pa.array(range(start, end), pa.int64()),
            "timestamp": pa.array(times_us, pa.timestamp("us", "UTC")),
        }
    )


def texts(batches: list[pa.RecordBatch]) -> list[str | None]:
    return [text for one in batches for text in one.column(MEASURE).to_pylist()]


def test_a_range_is_measured_in_its_last_row_alone() -> None:
    empty = batch(3, 3)
    rows = list(measured(2, iter([batch(3, 6, 70, -5, 80), empty, batch(6, 7, 9), empty])))
    assert [one.num_rows for one in rows] == [3, 1]
    *others, last = texts(rows)
    assert others == [None, None, None]
    (measure,) = parsed(last, 3).values()
    size_bytes = batch(3, 6, 70, -5, 80).nbytes + batch(6, 7, 9).nbytes
    assert measure == RangeMeasure(2, 4, 3, 6, -5, 80, size_bytes, 0)
    assert list(measured(0, iter([empty]))) == []


def test_a_task_that_ran_twice_counts_once_and_two_that_differ_count_for_nothing() -> None:
    one, other = RangeMeasure(0, 5, 0, 4), RangeMeasure(1, 7, 5, 11)
    said = [other.to_json(), one.to_json(), one.to_json(), other.to_json()]
    assert parsed("\n".join(said), 2) == {0: one, 1: other}
    assert parsed("", 2) == {}
    assert parsed("\n".join([one.to_json(), replace(one, last=3).to_json()]), 2) is None
    assert parsed(other.to_json(), 1) is None


def test_slices_share_a_commits_bytes_by_what_their_rows_take() -> None:
    added = [Slice(p, 0, "archive", 0, 10, f"{p:016x}", -1, 5) for p in range(3)]
    of_range = {
        0: RangeMeasure(0, 10, 0, 9, 1_999, 7_000, size_bytes=300),
        2: RangeMeasure(2, 4, 6, 9, -1, 0, size_bytes=100),
    }
    first, second, third = known(added, of_range, 1000)
    assert (first.records, first.first, first.last, first.size_bytes) == (10, 0, 9, 750)
    assert (first.min_timestamp_ms, first.max_timestamp_ms) == (1, 7)
    assert (second.records, second.first, second.size_bytes, second.is_known) == (0, 0, 0, True)
    assert (third.first, third.size_bytes, third.min_timestamp_ms) == (6, 250, -1)


def test_without_an_answer_or_with_another_count_nothing_is_known(monkeypatch) -> None:
    added = [Slice(0, 0, "archive", 0, 10, "0" * 16, -1, 5)]
    metrics = {"numOutputRows": "10", "numOutputBytes": "99"}
    never = threading.Event()

    class Said:
        @property
        def get(self) -> Any:
            return {MEASURE: RangeMeasure(0, 10, 0, 9, size_bytes=1).to_json()}

    class Silent:
        @property
        def get(self) -> Any:
            return never.wait()

    def listening(observation: Any) -> Measuring:
        measuring = Measuring(added)
        measuring._observation = observation
        return measuring

    (one,) = listening(Said()).slices(metrics) or ()
    assert (one.records, one.size_bytes) == (10, 99)
    assert listening(Said()).slices({**metrics, "numOutputRows": "11"}) is None
    assert listening(Said()).slices({}) is None
    assert Measuring(added).slices(metrics) is None  # nothing was observed
    monkeypatch.setattr(named_measures, "WAIT_S", 0.01)
    silent = listening(Silent())
    assert not silent.is_deaf
    assert silent.slices(metrics) is None
    assert silent.is_deaf
    never.set()


# -- with Spark --------------------------------------------------------------------------------

VALUES = {"lakelog.value.columns": "id bigint"}


def told(table: NamedTable) -> list[SegmentFile]:
    """But sizes: those of several ranges are shares."""
    return [replace(file, size_bytes=0) for file in table.snapshot().files]


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many slices each query measured."""
    asked: list[int] = []
    look_up = named_table.look_up

    def counting(spark: Any, name: str, version: int, slices: Any) -> Any:
        asked.append(len(slices))
        return look_up(spark, name, version, slices)

    monkeypatch.setattr(named_table, "look_up", counting)
    return asked


def two_ranges(topic: Topic, table: NamedTable) -> Any:
    """Partition 0 in one range, 1 in another; timestamps that go back."""
    snapshot = table.snapshot()
    one = archive(topic, snapshot, 3000)
    other = archive(topic, snapshot, 40, partition=1)
    both = replace(one, adds=one.adds + other.adds, registers={**one.registers, **other.registers})
    return table.apply(both, snapshot)


def test_an_archive_is_measured_without_a_query(make_named, queries) -> None:
    topic = Topic("orders", uuid4(), 2, TopicConfig.of(VALUES))
    rows = MadeUpRows(times={7: EPOCH_MS - 9_000, 8: EPOCH_MS + 10_000_000})
    table = make_named(topic, rows)
    applied = two_ranges(topic, table)
    assert queries == []
    assert sorted(applied.unparsed) == [0, 1]
    assert [file.records for file in applied.files] == [3000, 40]
    assert {file.min_timestamp_ms for file in applied.files} == {EPOCH_MS - 9_000}

    other = make_named(topic, rows)
    assert told(other) == told(table)
    assert queries == [2]
    assert sum(file.size_bytes for file in other.snapshot().files) == pytest.approx(
        sum(file.size_bytes for file in table.snapshot().files), abs=2
    )
    unparsed = other._reader.unparsed(other.snapshot().version, applied.files)
    assert applied.unparsed == unparsed

    table.apply(archive(topic, table.snapshot(), 3010), table.snapshot())
    assert next(iter(make_named(topic, rows).snapshot().files)).records == 3000
    assert queries == [2, 1]  # of the newest alone: what was measured stands in the next note


def test_where_no_measure_comes_a_query_tells(make_named, queries, monkeypatch) -> None:
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    monkeypatch.setattr(named_measures, "WAIT_S", 0.1)
    never = threading.Event()

    class Unheard:
        """As an observation that nobody completes."""

        @property
        def get(self) -> Any:
            never.wait()

    def observe(self: Measuring, rows: Any) -> Any:
        self._observation = Unheard()
        return rows

    monkeypatch.setattr(Measuring, "observe", observe)
    for end in (30, 60):
        applied = table.apply(archive(topic, table.snapshot(), end), table.snapshot())
        assert [file.records for file in applied.files] == [30]
    assert queries == [1, 1]
    assert table._listener(_Commit()) is None  # nor is the next one listened to
    never.set()


class _Commit:
    ranges = (HotRange,)


def test_a_look_that_finds_nothing_new_asks_for_no_history(make_named, monkeypatch) -> None:
    topic = Topic("orders", uuid4(), 1)
    table, other = make_named(topic, directly=False), make_named(topic)
    table.apply(archive(topic, table.snapshot(), 30), table.snapshot())
    asked: list[int] = []
    read_history = view.read_history

    def counting(*given: Any) -> Any:
        asked.append(given[-1])
        return read_history(*given)

    monkeypatch.setattr(view, "read_history", counting)
    before = table.snapshot()
    assert table.snapshot() is before
    assert asked == []
    applied = table.apply(archive(topic, before, 50), before)
    assert asked == [before.version]  # to see that it landed
    assert other.snapshot().archived_end(0) == 50
    table.spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('by' = 'somebody')")
    assert table.snapshot().version == applied.snapshot.version + 1


def test_a_filter_by_offset_and_time_leaves_out_files_by_their_statistics(make_named) -> None:
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    for end in (50, 100, 150):
        table.apply(archive(topic, table.snapshot(), end), table.snapshot())
    for where in (
        "offset >= 50 AND offset < 100",
        f"timestamp >= timestamp_millis({EPOCH_MS + 52}) "
        f"AND timestamp < timestamp_millis({EPOCH_MS + 100})",  # Delta allows for a ms
    ):
        found = table.spark.sql(f"SELECT offset FROM {table.name} WHERE {where}")
        assert len(found.inputFiles()) == 1
        assert {row["offset"] for row in found.collect()} >= set(range(52, 100))

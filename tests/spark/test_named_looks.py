"""What a look at a table by name asks, and what it finds of the rows that were just written."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from made_up import EPOCH_MS, MadeUpRows, archive
from msgspec.structs import replace

from lakelog.cold.by_name import spark_view as view
from lakelog.values.config import TopicConfig
from lakelog.values.topic import Topic

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("directly", [True, False], ids=["directly", "through Spark"])
def test_what_was_archived_is_measured_by_its_rows(make_named: Any, directly: bool) -> None:
    topic = Topic("orders", uuid4(), 2, TopicConfig.of({"lakelog.value.columns": "id bigint"}))
    rows = MadeUpRows(times={7: EPOCH_MS - 9_000, 8: EPOCH_MS + 10_000_000})
    table = make_named(topic, rows, directly=directly)
    snapshot = table.snapshot()
    one = archive(topic, snapshot, 3000)
    other = archive(topic, snapshot, 40, partition=1)
    both = replace(one, adds=one.adds + other.adds, registers={**one.registers, **other.registers})
    applied = table.apply(both, snapshot)
    assert [file.records for file in applied.files] == [3000, 40]
    assert {file.min_timestamp_ms for file in applied.files} == {EPOCH_MS - 9_000}
    assert {file.max_timestamp_ms for file in applied.files} == {EPOCH_MS + 10_000_000}
    assert applied.unparsed == {
        0: sum(rows.record(topic.partition(0), offset).value is not None for offset in range(3000)),
        1: sum(rows.record(topic.partition(1), offset).value is not None for offset in range(40)),
    }
    # What was looked up stands in the next note, so a later reader need not look again.
    table.apply(archive(topic, table.snapshot(), 3010), table.snapshot())
    told = [file for file in make_named(topic, rows).snapshot().files if file.records > 10]
    assert told == list(applied.files)


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

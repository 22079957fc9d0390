"""Tables by name that somebody else touches: what is harmless stays so, what is not is noticed."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
import strangers
from made_up import archive
from msgspec.structs import replace

from lakelog.cold.by_name import named_table as named_table
from lakelog.cold.by_name.location import TableLocation
from lakelog.cold.by_name.named_table import REGISTERS_PROPERTY, NamedTable
from lakelog.cold.by_name.names import TableName, unquoted
from lakelog.cold.by_name.spark_view import read_history
from lakelog.cold.change import Change, Rewrite
from lakelog.cold.registers import LogStart
from lakelog.cold.segment import SegmentFile, SegmentIndex
from lakelog.errors import ColdTierError, ContradictionError, ForeignTableError
from lakelog.values.config import TopicConfig
from lakelog.values.producer_calls import ProducerCall
from lakelog.values.record import to_records
from lakelog.values.topic import Topic

pytestmark = pytest.mark.slow


@pytest.fixture
def topic() -> Topic:
    return Topic("orders", uuid4(), 1)


@pytest.fixture
def filled(make_named: Any, topic: Topic) -> NamedTable:
    """[0, 30) in one segment, [30, 90) in the next, in two commits."""
    table = make_named(topic)
    snapshot = table.apply(archive(topic, table.snapshot(), 30), table.snapshot()).snapshot
    table.apply(archive(topic, snapshot, 60, 90, segment=30), snapshot)
    return table


def offsets(table: NamedTable, topic: Topic) -> list[int]:
    files = table.snapshot().files.of_partition(0)
    batches = table.read(files, 0, 2**53)
    return [record.offset for b in batches for record in to_records(topic.partition(0), b)]


def sql(table: NamedTable, statement: str) -> list[Any]:
    return list(table.spark.sql(statement.format(name=table.name)).collect())


def test_files_that_somebody_rewrites_change_nothing_of_the_index(make_named, filled, topic):
    before = filled.snapshot()
    strangers.rewrite(filled.spark, filled.name)
    for table in (filled, make_named(topic)):
        after = table.snapshot()
        assert after.version > before.version
        assert _but_sizes(after.files) == _but_sizes(before.files)
        assert offsets(table, topic) == list(range(90))
    archived = filled.apply(archive(topic, after, 100, segment=30), after)
    assert archived.snapshot.archived_end(0) == 100


def test_rows_that_somebody_moves_stop_the_work_until_they_are_back(make_named, filled, topic):
    version = filled.snapshot().version
    for statement, why in (
        ("DELETE FROM {name} WHERE offset = 40", "lost records"),
        ("INSERT INTO {name} SELECT * FROM {name} WHERE offset = 10", "more rows than offsets"),
        (f"RESTORE TABLE {{name}} TO VERSION AS OF {version - 1}", "files end at 30"),
    ):
        sql(filled, statement)
        for table in (filled, make_named(topic)):
            with pytest.raises(ContradictionError, match=why):
                table.snapshot()
        assert filled.unchecked().archived_end(0) == 90  # for those who look for damage
        sql(filled, f"RESTORE TABLE {{name}} TO VERSION AS OF {version}")
        assert filled.snapshot().archived_end(0) == 90
    assert offsets(make_named(topic), topic) == list(range(90))


def test_rows_that_somebody_changed_in_place_are_where_they_were(make_named, filled, topic):
    snapshot = filled.snapshot()
    # Some catalogs let nobody merge what lies in the newest segment.
    filled.apply(archive(topic, snapshot, 100, segment=90), snapshot)
    sql(filled, "UPDATE {name} SET value = CAST('gone' AS BINARY) WHERE offset BETWEEN 50 AND 70")
    snapshot = filled.snapshot()
    files = tuple(snapshot.files.of_partition(0))[1:3]
    change = Change(
        adds=(Rewrite(topic.partition(0), 30, files),), removes=files, data_change=False
    )
    merged = filled.apply(change, snapshot).snapshot
    assert [(f.start_offset, f.end_offset) for f in merged.files] == [(0, 30), (30, 90), (90, 100)]
    assert offsets(make_named(topic), topic) == list(range(100))


def test_a_table_of_somebody_else_is_refused(make_named, spark, topic):
    theirs = make_named(topic)
    spark.sql(f"CREATE TABLE {theirs.name} (a INT) USING delta")
    with pytest.raises(ForeignTableError, match="did not make"):
        theirs.snapshot()


def test_what_others_committed_since_is_all_that_is_looked_at(
    make_named, filled, topic, monkeypatch
):
    looked_up: list[int] = []
    look_up = named_table.look_up

    def counting(spark: Any, name: str, version: int, slices: Any) -> Any:
        looked_up.append(len(slices))
        return look_up(spark, name, version, slices)

    monkeypatch.setattr(named_table, "look_up", counting)
    table = make_named(topic)
    assert _but_sizes(table.snapshot().files) == _but_sizes(filled.snapshot().files)
    assert looked_up == [2]  # the first commit's slice stands in the second one's note
    assert table.snapshot() is table.snapshot()
    assert looked_up == [2]


def test_registers_outlive_the_history(make_named, filled, topic, monkeypatch):
    """Delta cleans up its log in the end; what the notes said is in the properties by then."""
    told = [ProducerCall(7, 3, 0, 1, 93, checksum="0a1b2c3d")]
    more = archive(topic, filled.snapshot(), 95, segment=30, calls=told)
    snapshot = filled.apply(more, filled.snapshot()).snapshot
    first = tuple(snapshot.files.of_partition(0))[:1]
    change = Change(removes=first, registers={LogStart(0): 35})
    before = filled.apply(change, snapshot).snapshot
    monkeypatch.setattr(named_table, "COPY_AFTER_MS", -1)
    filled.mirror(Topic("orders", topic.topic_id, 1, config_version=5))
    (kept,) = [
        row["value"]
        for row in sql(filled, "SHOW TBLPROPERTIES {name}")
        if row["key"] == REGISTERS_PROPERTY
    ]
    assert json.loads(kept)["registers"]["log_start"] == {"0": 35}
    sql(filled, "ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    strangers.rewrite(filled.spark, filled.name)
    sql(filled, "ALTER TABLE {name} SET TBLPROPERTIES ('by' = 'somebody')")
    _forget_history(filled)

    table = make_named(topic)
    after = table.snapshot()
    assert (after.archived_end(0), after.log_start(0)) == (95, 35)
    assert [(f.segment, f.records, f.end_offset) for f in after.files] == [(30, 65, 95)]
    assert list(table.last_calls([0])[0]) == told
    assert table.apply(archive(topic, after, 100, segment=30), after).superseded == frozenset()
    assert offsets(make_named(topic), topic) == list(range(30, 100))
    assert before.log_start(0) == 35


def test_of_producers_the_properties_have_only_those_that_a_repeat_may_come_of(
    make_named, filled, topic, monkeypatch
):
    """Each checkpoint has the properties whole: not what notes still tell, or what expired."""

    def kept() -> dict[str, Any]:
        rows = sql(filled, "SHOW TBLPROPERTIES {name}")
        (text,) = [row["value"] for row in rows if row["key"] == REGISTERS_PROPERTY]
        return json.loads(text)["producers"]

    told = [ProducerCall(7, 3, 0, 1, 93, checksum="0a1b2c3d")]
    more = archive(topic, filled.snapshot(), 95, segment=30, calls=told)
    filled.apply(more, filled.snapshot())
    filled.mirror(replace(topic, config_version=5))
    assert kept() == {}  # the newest note is young
    monkeypatch.setattr(named_table, "COPY_AFTER_MS", -1)
    forgetful = TopicConfig.of(**{"producer.id.expiration.ms": 1})
    filled.mirror(replace(topic, config=forgetful, config_version=6))
    assert kept() == {}
    filled.mirror(replace(topic, config_version=7))
    assert list(kept()) == ["0"]


def test_without_a_copy_a_forgotten_history_is_an_error(make_named, filled, topic):
    sql(filled, "ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    strangers.rewrite(filled.spark, filled.name)
    sql(filled, "ALTER TABLE {name} SET TBLPROPERTIES ('by' = 'somebody')")
    _forget_history(filled)
    with pytest.raises(ColdTierError, match="no longer holds lakelog's registers"):
        make_named(topic).snapshot()


def _but_sizes(files: SegmentIndex) -> list[SegmentFile]:
    """A slice's size is its share of the files it lies in, which others may merge."""
    return [replace(file, size_bytes=0) for file in files]


def _forget_history(table: NamedTable) -> None:
    """As Delta does when ``delta.logRetentionDuration`` is over: up to the newest checkpoint."""
    located = TableLocation(TableName(*unquoted(table.name)), lambda: table.spark).find()
    assert located is not None
    storage = located.storage
    log = f"{storage.root}/_delta_log"
    newest = read_history(table.spark, table.name, uuid4(), 0)[0].version
    there = {info.base_name for info in storage.list_files(log, recursive=False)}
    assert any(name.startswith(f"{newest:020}.checkpoint.") for name in there)
    forgotten = {f"{version:020}.json" for version in range(newest)}
    assert forgotten <= there
    storage.delete_files(f"{log}/{name}" for name in forgotten)
    # Delta remembers the log as it was.
    table.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

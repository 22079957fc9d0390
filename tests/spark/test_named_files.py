"""What is archived by name as files is what Spark's own writer would have made of the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up import EPOCH_MS, MadeUpRows, archive, batch_of
from msgspec.structs import replace

from lakelog.cold.by_name import named_table as named_table
from lakelog.cold.by_name.delta_transaction import DeltaTransaction
from lakelog.cold.by_name.file_layout import FileLayout
from lakelog.cold.by_name.named_table import MOST_FILES_REFUSED, NamedTable
from lakelog.cold.by_name.names import quoted, unquoted
from lakelog.cold.by_name.ready_files import write_ready_file
from lakelog.cold.change import HotRange
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierAccessError, ColdTierError
from lakelog.testing.object_store import Fault, FaultyFront
from lakelog.testing.unity_catalog import UnityCatalogServer
from lakelog.values.config import PARQUET_COMPRESSION, TopicConfig
from lakelog.values.record import RECORDS, Record
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

VALUES = "id bigint, m map<string,struct<a:int,b:array<string>>>, d decimal(10,2), at timestamp"


def json_rows(times: dict[int, int]) -> MadeUpRows:
    """As `MadeUpRows`, with values that become columns, and some that do not."""

    class JsonRows(MadeUpRows):  # in here, since executors cannot import a test
        def record(self, topic_partition: TopicPartition, offset: int) -> Record:
            record = super().record(topic_partition, offset)
            if record.value is None or offset % 4 == 0:
                return record
            value = {
                "id": None if offset % 3 == 0 else offset,
                "m": {"x": {"a": offset, "b": ["ä", None]}, "y": None},
                "d": "1.25",
                "at": "2024-02-29T12:00:00.000001Z",
            }
            return replace(record, value=json.dumps(value).encode())

    return JsonRows(times=times)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each archive commit is written: ``files`` or ``rows``."""
    seen: list[str] = []
    hand_over, write = NamedTable._hand_over, NamedTable._write

    def by_files(self: NamedTable, *given: Any) -> Any:
        seen.append("files")
        return hand_over(self, *given)

    def by_rows(self: NamedTable, *given: Any) -> Any:
        seen.append("rows")
        return write(self, *given)

    monkeypatch.setattr(NamedTable, "_hand_over", by_files)
    monkeypatch.setattr(NamedTable, "_write", by_rows)
    return seen


def grow(table: NamedTable, topic: Topic, *ends: int, **more: Any) -> Any:
    for end in ends:
        snapshot = table.snapshot()
        applied = table.apply(archive(topic, snapshot, end, **more), snapshot)
    return applied


def rows(table: NamedTable) -> list[Any]:
    # As text: Python has no year 10,000.
    texts = table.spark.table(table.name).selectExpr("to_json(struct(*)) AS text")
    return sorted(row["text"] for row in texts.collect())


def test_files_hold_what_sparks_writer_would_have_written(make_named, writes, monkeypatch):
    topic = Topic("orders", uuid4(), 2, TopicConfig.of({"lakelog.value.columns": VALUES}))
    times = {3: EPOCH_MS - 9_000, 5: 253_402_300_800_000}
    by_files = make_named(topic, json_rows(times))
    with monkeypatch.context() as patched:
        patched.setattr(DeltaTransaction, "begin", staticmethod(lambda *_: None))
        by_rows = make_named(topic, json_rows(times), table="by_rows")
        counted = grow(by_rows, topic, 40, 1500).unparsed
        grow(by_rows, topic, 90, partition=1)
    assert grow(by_files, topic, 40, 1500).unparsed == counted
    grow(by_files, topic, 90, partition=1)
    assert writes == ["rows"] * 3 + ["files"] * 3
    assert rows(by_files) == rows(by_rows)
    assert by_files.spark.table(by_files.name).schema == by_rows.spark.table(by_rows.name).schema

    told, others = (
        [(one.records, one.start_offset, one.min_timestamp_ms, one.max_timestamp_ms) for one in t]
        for t in (by_files.snapshot().files, by_rows.snapshot().files)
    )
    assert told == others
    newest = by_files.spark.sql(f"DESCRIBE HISTORY {by_files.name} LIMIT 1").first()
    assert newest["operation"] == "WRITE"
    assert newest["isBlindAppend"]
    assert newest["operationMetrics"]["numOutputRows"] == "90"


def test_another_process_needs_no_query_for_what_files_hold(make_named, writes, monkeypatch):
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 30, 75)

    def asked(*_: object) -> Any:
        raise AssertionError("a query measured what the note says")

    monkeypatch.setattr(named_table, "look_up", asked)
    other = make_named(topic)
    assert list(other.snapshot().files) == list(table.snapshot().files)
    assert [file.records for file in other.snapshot().files] == [30, 45]
    assert writes == ["files", "files"]


def test_a_filter_by_offset_and_time_leaves_out_files_by_their_statistics(make_named):
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 50, 100, 150)
    spark = table.spark
    for where in (
        "offset >= 50 AND offset < 100",
        f"timestamp >= timestamp_millis({EPOCH_MS + 52}) "
        f"AND timestamp < timestamp_millis({EPOCH_MS + 100})",  # Delta allows for a ms
    ):
        found = spark.sql(f"SELECT offset FROM {table.name} WHERE {where}")
        assert len(found.inputFiles()) == 1
        assert {row["offset"] for row in found.collect()} >= set(range(52, 100))


@pytest.mark.parametrize(
    "demand",
    [
        "ADD CONSTRAINT small CHECK (offset < 1000)",
        pytest.param(
            "SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', "
            "'delta.columnMapping.mode' = 'name')",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_table_that_asks_more_of_a_writer_gets_rows(make_named, writes, catalog, demand):
    if catalog != "spark_catalog":
        pytest.skip("the catalog allows no such change")
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 30)
    table.spark.sql(f"ALTER TABLE {table.name} {demand}")
    grow(table, topic, 60)
    assert writes == ["files", "rows"]
    assert table.spark.table(table.name).count() == 60
    if "CHECK" in demand:
        with pytest.raises(ColdTierError, match="takes no commit"):
            grow(table, topic, 1001)


@pytest.mark.slow
def test_a_table_that_gets_column_mapping_later_gets_files_with_its_names(
    make_named, writes, catalog
):
    if catalog != "spark_catalog":
        pytest.skip("the catalog maps all columns from the start")
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 30)
    table.spark.sql(
        f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMN theirs INT")
    grow(table, topic, 60)
    assert writes == ["files", "files"]
    assert [row["theirs"] for row in table.spark.table(table.name).collect()] == [None] * 60
    batches = table.read(table.snapshot().files, 0, 60)
    assert [at for one in batches for at in one.column("offset").to_pylist()] == list(range(60))


@pytest.mark.slow
def test_of_two_commits_planned_at_once_the_second_does_not_land(make_named, writes, monkeypatch):
    topic = Topic("orders", uuid4(), 1)
    table, other = make_named(topic), make_named(topic)
    grow(table, topic, 10)
    commit = DeltaTransaction.commit
    between = iter([lambda: grow(other, topic, 25)])

    def late(self: DeltaTransaction, *given: Any) -> int:
        next(between, lambda: None)()
        return commit(self, *given)

    monkeypatch.setattr(DeltaTransaction, "commit", late)
    before = table.snapshot()
    applied = table.apply(archive(topic, before, 20), before)
    assert applied.superseded == {0}
    assert table.snapshot().archived_end(0) == 25
    assert table.spark.table(table.name).count() == 25
    assert writes == ["files"] * 3


@pytest.mark.slow
def test_a_commit_of_no_matter_comes_in_between(make_named, writes, monkeypatch):
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 10)
    commit = DeltaTransaction.commit

    def late(self: DeltaTransaction, *given: Any) -> int:
        table.spark.sql(f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE false")
        return commit(self, *given)

    monkeypatch.setattr(DeltaTransaction, "commit", late)
    grow(table, topic, 20)
    assert table.snapshot().archived_end(0) == 20
    assert table.spark.table(table.name).count() == 20
    assert writes == ["files"] * 2


@pytest.mark.slow
def test_where_delta_takes_no_files_rows_are_written_and_files_tried_no_more(
    make_named, writes, monkeypatch
):
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 10)

    def refuse(*_: object) -> int:
        raise AttributeError("no such method")

    monkeypatch.setattr(DeltaTransaction, "commit", refuse)
    grow(table, topic, *range(20, 20 + 10 * MOST_FILES_REFUSED, 10))
    assert writes == ["files"] + ["files", "rows"] * MOST_FILES_REFUSED
    grow(table, topic, 100)
    assert writes[-2:] == ["rows", "rows"]
    assert table.spark.table(table.name).count() == 100


@pytest.fixture
def refusing_store(unity_server: UnityCatalogServer | None) -> Iterator[str]:
    """The URL of the object store, where it is one, by a way on which it takes no file."""
    if unity_server is None:
        yield ""
        return
    port = urlsplit(os.environ["AWS_ENDPOINT_URL"]).port
    assert port is not None
    front = FaultyFront(port).start()
    front.inject(*(Fault(method, "archive", status=403, times=None) for method in ("PUT", "POST")))
    yield front.url
    front.stop()


def no_keys(storage: Storage, refusing_store: str) -> Storage:
    raise ColdTierAccessError(f"no keys that write {storage.root} for you")


def refused_by_the_store(storage: Storage, refusing_store: str) -> Storage:
    options = {**storage.store_options, "AWS_ENDPOINT_URL": refusing_store}
    return Storage(storage.root, options, storage.keys)


def elsewhere(storage: Storage, refusing_store: str) -> Storage:
    """As when the tasks' environment and Spark's settings lead to different stores."""
    return Storage(f"{storage.root}-elsewhere", dict(storage.store_options), storage.keys)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opened", "written"),
    [
        (no_keys, ["rows"]),
        (refused_by_the_store, ["files", "rows"]),
        (elsewhere, ["files", "rows"]),
    ],
)
def test_where_tasks_cannot_write_a_store_spark_writes_the_rows(
    make_named, writes, monkeypatch, catalog, refusing_store, opened, written
):
    """Where the table lies in a folder, nobody needs keys."""
    to_write = Storage.to_write
    monkeypatch.setattr(
        Storage, "to_write", lambda storage: opened(to_write(storage), refusing_store)
    )
    topic = Topic("orders", uuid4(), 1)
    table = make_named(topic)
    grow(table, topic, 30, 75)
    on_s3 = catalog == UnityCatalogServer.CATALOG_ON_S3
    assert writes == (written if on_s3 else ["files"]) * 2
    assert table.spark.table(table.name).count() == 75
    batches = table.read(table.snapshot().files, 0, 75)
    assert [at for one in batches for at in one.column("offset").to_pylist()] == list(range(75))


# -- without Spark -----------------------------------------------------------------------------


def column(name: str, kind: Any, physical: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata, **more}


def struct(*fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def metadata(**changed: Any) -> dict[str, Any]:
    """Of a table with column mapping; `changed` replaces columns, None takes them out."""
    pair = struct(column("key", "string", "c-k"), column("value", "binary", "c-v"))
    columns = {
        "partition": column("partition", "integer", "c-p"),
        "segment": column("segment", "long", "c-s"),
        "offset": column("offset", "long", "c-o"),
        "timestamp": column("timestamp", "timestamp", "c-t"),
        "timestampType": column("timestampType", "integer", "c-tt"),
        "key": column("key", "binary", "c-key"),
        "value": column("value", "binary", "c-value"),
        "headers": column(
            "headers", {"type": "array", "elementType": pair, "containsNull": True}, "c-h"
        ),
        "delete_horizon": column("delete_horizon", "timestamp", "c-d"),
        **changed,
    }
    fields = [one for one in columns.values() if one is not None]
    return {
        "schemaString": json.dumps(struct(*fields)),
        "partitionColumns": ["partition", "segment"],
    }


def test_a_file_has_the_tables_own_names_and_the_same_rows(tmp_path) -> None:
    snappy = TopicConfig.of({PARQUET_COMPRESSION: "snappy"})
    layout = FileLayout.of(Storage(str(tmp_path)), metadata(), pa.schema([]), snappy)
    assert layout is not None
    assert layout.partition_columns == ("c-p", "c-s")
    hot = HotRange(TopicPartition("orders", 3), uuid4(), 0, 0, 2000)
    file = write_ready_file(hot, layout=layout, rows_of=MadeUpRows())
    assert json.loads(file.statistics)["minValues"]["c-o"] == 0
    assert (file.records, file.first, file.last) == (2000, 0, 1999)
    assert (
        pq.ParquetFile(tmp_path / file.path).metadata.row_group(0).column(4).compression == "SNAPPY"
    )
    table = pq.read_table(tmp_path / file.path, partitioning=None)
    assert table.schema.names == ["c-o", "c-t", "c-tt", "c-key", "c-value", "c-h", "c-d"]
    assert {one.name for one in table.schema.field("c-h").type.value_type} == {"c-k", "c-v"}
    expected = batch_of(MadeUpRows().records(hot.topic_partition, 0, 2000))
    for name in RECORDS.names:
        if name == "headers":
            continue
        assert table[layout.names[name]].to_pylist() == expected.column(name).to_pylist()
    headers = [
        [(one["c-k"], one["c-v"]) for one in of_record] for of_record in table["c-h"].to_pylist()
    ]
    assert headers == [
        [(one["key"], one["value"]) for one in of_record]
        for of_record in expected.column("headers").to_pylist()
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": column("offset", "integer")},
        {"value": None},
        {"key": column("key", "binary", nullable=False)},
        {"theirs": column("theirs", "long", nullable=False)},
        {"theirs": column("theirs", "long", metadata={"delta.generationExpression": "offset"})},
        {"theirs": column("theirs", "long", metadata={"delta.identity.start": 1})},
        {"headers": column("headers", {"type": "array", "elementType": "binary"})},
    ],
)
def test_columns_that_files_do_not_fit_have_no_layout(changed) -> None:
    assert FileLayout.of(Storage("/t"), metadata(**changed), pa.schema([]), TopicConfig()) is None


def test_columns_of_others_that_may_be_null_do_not_matter() -> None:
    theirs = {"theirs": column("theirs", {"type": "map", "keyType": "string", "valueType": "long"})}
    assert (
        FileLayout.of(Storage("/t"), metadata(**theirs), pa.schema([]), TopicConfig()) is not None
    )
    other = metadata() | {"partitionColumns": ["partition"]}
    assert FileLayout.of(Storage("/t"), other, pa.schema([]), TopicConfig()) is None


@pytest.mark.parametrize("parts", [("a", "b", "c"), ("ä`b", "``", "x.y")])
def test_a_quoted_name_is_taken_apart_again(parts) -> None:
    assert unquoted(quoted(*parts)) == list(parts)

"""What Presto, Trino and Athena must find in a table: the oldest protocol, and nothing besides.

Their own connectors cannot be run here, so this holds the table against what they document: Delta
reader version 1 (no deletion vectors, no mapped columns), Parquet types that all of them have.

Source: Delta's PROTOCOL.md; the Delta Lake connectors' pages of Presto and Trino; Athena's page on
Delta Lake tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from archived_topic import ArchivedTopic
from deltalake import DeltaTable

from lakelog.cold.registers import REGISTER_NAMES

ACTIONS = {"commitInfo", "protocol", "metaData", "add", "remove", "txn"}

CHECKPOINT_FIELDS = {"version", "size", "sizeInBytes", "numOfAddFiles"}

#: Those that Delta reader version 1 knows and every engine has.
DELTA_TYPES = {
    *("binary", "boolean", "byte", "short", "integer", "long", "float", "double", "string"),
    *("date", "timestamp", "decimal"),
}

PARQUET_TYPES = {
    *("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
}

ENCODINGS = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA_BINARY_PACKED"}


def actions(table: ArchivedTopic, kind: str) -> list[dict[str, Any]]:
    """Of all commits, in order."""
    commits = sorted((table.path / "_delta_log").glob("*.json"))
    assert len(commits) == table.table.snapshot().version + 1
    lines = [line for commit in commits for line in commit.read_text("utf-8").splitlines()]
    parsed = [json.loads(line) for line in lines]
    assert {name for action in parsed for name in action} <= ACTIONS
    return [action[kind] for action in parsed if kind in action]


def data_files(table: ArchivedTopic) -> Iterator[pq.ParquetFile]:
    paths = [path for path in table.path.rglob("*.parquet") if path.parent.name != "_delta_log"]
    assert {path.name.split("-")[0] for path in paths} == {"archive", "clean"}
    yield from (pq.ParquetFile(path) for path in paths)


def delta_types(of: Any) -> Iterator[str]:
    """The primitive types in a Delta type."""
    if isinstance(of, str):
        yield of.partition("(")[0]
    elif of["type"] == "struct":
        for field in of["fields"]:
            assert "delta.columnMapping.id" not in field["metadata"]
            yield from delta_types(field["type"])
    else:
        for part in {"elementType", "keyType", "valueType"} & of.keys():
            yield from delta_types(of[part])


def test_the_protocol_is_the_oldest_and_stays_so(archived: ArchivedTopic) -> None:
    assert actions(archived, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]


def test_every_version_of_the_metadata_needs_no_feature(archived: ArchivedTopic) -> None:
    versions = actions(archived, "metaData")
    assert len(versions) > 1  # settings were altered
    for metadata in versions:
        assert metadata["format"] == {"provider": "parquet", "options": {}}
        assert metadata["partitionColumns"] == ["partition", "segment"]
        schema = json.loads(metadata["schemaString"])
        assert set(delta_types(schema)) <= DELTA_TYPES
        columns = {field["name"]: field["type"] for field in schema["fields"]}
        assert (columns["partition"], columns["segment"]) == ("integer", "long")
        asked = {name for name in metadata["configuration"] if name.startswith("delta.")}
        assert not [name for name in asked if "columnMapping" in name or "feature." in name]
        assert metadata["configuration"]["delta.enableDeletionVectors"] == "false"


def test_files_are_named_as_engines_without_lakelog_look_for_them(archived: ArchivedTopic) -> None:
    added, removed = actions(archived, "add"), actions(archived, "remove")
    assert added
    assert removed
    for action in added + removed:
        values = action["partitionValues"]
        assert all(isinstance(value, str) for value in values.values())
        path = unquote(action["path"])
        assert path.startswith(f"partition={values['partition']}/segment={values['segment']}/")
        assert action.get("deletionVector") is None
    for action in added:
        stats = json.loads(action["stats"])
        assert stats["numRecords"] > 0
        assert stats["minValues"]["offset"] <= stats["maxValues"]["offset"]
        assert action["size"] == (archived.path / unquote(action["path"])).stat().st_size


def test_the_checkpoint_is_the_classic_one(archived: ArchivedTopic) -> None:
    log = archived.path / "_delta_log"
    last = json.loads((log / "_last_checkpoint").read_text("utf-8"))
    assert {"version", "size"} <= last.keys() <= CHECKPOINT_FIELDS
    content = pq.read_table(log / f"{last['version']:020}.checkpoint.parquet")
    assert content.num_rows == last["size"]

    found = {name: content.column(name).drop_null().to_pylist() for name in content.column_names}
    (protocol,) = found.pop("protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 2)
    assert not protocol.get("readerFeatures")
    assert not protocol.get("writerFeatures")
    (metadata,) = found.pop("metaData")
    assert metadata["partitionColumns"] == ["partition", "segment"]
    before_it = DeltaTable(str(archived.path), version=last["version"]).file_uris()
    assert len(found["add"]) == last["numOfAddFiles"] == len(before_it)
    assert {type(action["stats"]) for action in found.pop("add")} == {str}
    assert found.pop("remove")
    assert len(found.pop("txn")) == len(REGISTER_NAMES) * archived.topic.partitions
    assert not any(found.values()), found


def test_parquet_files_hold_types_that_every_engine_reads(archived: ArchivedTopic) -> None:
    """No INT96 or nanoseconds, nothing unsigned, no encodings of yesterday."""
    for file in data_files(archived):
        assert not {"partition", "segment"} & set(file.schema_arrow.names)
        for column in (file.schema.column(index) for index in range(len(file.schema))):
            assert column.physical_type in PARQUET_TYPES
            kind = json.loads(column.logical_type.to_json())
            if kind["Type"] == "Timestamp":
                assert (kind["isAdjustedToUTC"], kind["timeUnit"]) == (True, "microseconds")
                assert column.converted_type == "TIMESTAMP_MICROS"  # what older readers look at
            elif kind["Type"] == "Int":
                assert kind["isSigned"]
            else:
                assert kind["Type"] in {"None", "String", "Date", "Decimal"}
        for group in (file.metadata.row_group(n) for n in range(file.num_row_groups)):
            for chunk in (group.column(index) for index in range(group.num_columns)):
                assert chunk.compression == "ZSTD"
                assert set(chunk.encodings) <= ENCODINGS

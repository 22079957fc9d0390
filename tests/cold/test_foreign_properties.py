"""Table properties with which Spark's next checkpoint leaves out what lakelog goes by."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures
from made_up import archive

from lakelog.cold.log_names import LOG, checkpoint_names
from lakelog.cold.properties import warnings
from lakelog.errors import ColdTierRefusedError

TXN_RETENTION = "delta.setTransactionRetentionDuration"


def checkpoint(path: str) -> Path:
    """A checkpoint of the newest version."""
    table = DeltaTable(path)
    table.create_checkpoint()
    return Path(path, LOG, checkpoint_names(table.version())[0])


def rewritten(file: Path, change: Any) -> None:
    actions = pq.read_table(file).to_pylist()
    schema = pq.read_schema(file)
    pq.write_table(pa.Table.from_pylist(*change(actions, schema)), file)


def as_spark_drops_transactions(path: str) -> None:
    """As Spark's checkpoints do with the property: what does not say how old it is goes first."""
    DeltaTable(path).alter.set_table_properties(
        {TXN_RETENTION: "interval 7 days"}, raise_if_not_exists=False
    )

    def dropped(actions: list[Any], schema: pa.Schema) -> Any:
        now_ms = datetime.now(timezone.utc).timestamp() * 1000
        kept = [
            action
            for action in actions
            if (txn := action["txn"]) is None or (txn.get("lastUpdated") or 0) > now_ms
        ]
        return kept, schema

    rewritten(checkpoint(path), dropped)


def without_last_updated(path: str) -> None:
    """The log as an older lakelog wrote it."""
    for file in Path(path, LOG).glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            action.get("txn", {}).pop("lastUpdated", None)
        file.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("is_older", [False, True])
def test_registers_outlive_a_checkpoint_that_drops_old_transactions(make_table, topic, is_older):
    table = make_table()
    table.apply(archive(topic, before := table.snapshot(), 10), before)
    if is_older:
        without_last_updated(table.path)
    registers = table.snapshot().registers

    as_spark_drops_transactions(table.path)

    found = make_table()
    assert found.snapshot().registers == registers
    found.apply(archive(topic, before := found.snapshot(), 20), before)
    for file in Path(table.path, LOG).glob("*.json"):  # somebody cleaned the log up
        if int(file.name[:20]) < DeltaTable(table.path).version():
            file.unlink()
    as_spark_drops_transactions(table.path)
    after = make_table().snapshot()
    assert (after.archived_end(0), after.log_start(0)) == (20, 0)


@pytest.mark.parametrize("parsed", [True, False])
def test_a_checkpoint_without_statistics_as_text_is_read(make_table, topic, parsed):
    table = make_table()
    table.apply(archive(topic, before := table.snapshot(), 10, 25), before)
    expected = table.snapshot().files

    def structs(actions: list[Any], schema: pa.Schema) -> Any:
        for action in actions:
            if (add := action["add"]) is not None:
                said = json.loads(add.pop("stats"))
                for bound in ("minValues", "maxValues"):
                    time = said[bound]["timestamp"].replace("Z", "+00:00")
                    said[bound]["timestamp"] = datetime.fromisoformat(time)
                if parsed:
                    add["stats_parsed"] = said
        adds = [field for field in schema.field("add").type if field.name != "stats"]
        bounds = pa.struct([("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC"))])
        kind = pa.struct([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds)])
        adds += [pa.field("stats_parsed", kind)] if parsed else []
        return actions, pa.schema(
            [pa.field("add", pa.struct(adds)) if one.name == "add" else one for one in schema]
        )

    rewritten(checkpoint(table.path), structs)

    found = make_table().snapshot().files
    columns = ["path", "start_offset", "end_offset", "first", "last"]
    columns += ["records", "min_timestamp_ms", "max_timestamp_ms"] if parsed else []
    assert found.columns.select(columns) == expected.columns.select(columns)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({TXN_RETENTION: "interval 7 days"}, f"UNSET TBLPROPERTIES ('{TXN_RETENTION}')"),
        ({"delta.checkpoint.writeStatsAsJson": "False"}, "UNSET TBLPROPERTIES"),
        ({"delta.appendOnly": "true"}, "UNSET TBLPROPERTIES ('delta.appendOnly')"),
        ({"delta.dataSkippingStatsColumns": "value"}, "Add both"),
        ({"delta.deletedFileRetentionDuration": "interval 0 hours"}, "file.delete.delay.ms"),
        ({"delta.deletedFileRetentionDuration": "soon"}, "file.delete.delay.ms"),
    ],
)
def test_a_property_that_will_be_in_the_way_is_told_with_what_to_do(properties, said):
    (warning,) = warnings(properties)
    assert said in warning
    assert next(iter(properties)) in warning


@pytest.mark.parametrize("as_checkpoint", [False, True])
def test_a_feature_with_which_nothing_is_committed_is_told_with_what_to_do(
    make_table, topic, as_checkpoint
):
    table = make_table()
    table.apply(archive(topic, before := table.snapshot(), 10), before)
    DeltaTable(table.path).alter.add_feature(
        [TableFeatures.ChangeDataFeed, TableFeatures.RowTracking, TableFeatures.DomainMetadata],
        allow_protocol_versions_increase=True,
    )
    if as_checkpoint:
        checkpoint(table.path)
        table = make_table()
    (warning,) = table.warnings()
    assert warning.startswith("somebody turned on domainMetadata, rowTracking: ")
    assert "RESTORE the table" in warning
    assert table.snapshot().archived_end(0) == 10
    with pytest.raises(ColdTierRefusedError, match="RowTracking"):
        table.apply(archive(topic, before := table.snapshot(), 20), before)


def test_a_table_s_own_properties_are_no_reason_to_warn(make_table, topic):
    table = make_table()
    table.apply(archive(topic, before := table.snapshot(), 10), before)
    assert table.warnings() == []
    struct = {"delta.checkpoint.writeStatsAsStruct": "true"}
    assert list(warnings({"delta.checkpoint.writeStatsAsJson": "false", **struct})) == []
    DeltaTable(table.path).alter.set_table_properties({"delta.appendOnly": "true"})
    assert len(table.warnings()) == 1

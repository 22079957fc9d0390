"""A catalog's table read where it lies: what the catalog says, and keys that it gives for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import deltalake
import pyarrow as pa
import pytest
from made_up import MadeUpRows
from workspace import LOCATION, SCHEMA, SELECT, Registered, Workspace

from lakelog.base.back_off import BackOff
from lakelog.cold.by_name.delta_actions import NotDirectError
from lakelog.cold.by_name.either_view import EitherView
from lakelog.cold.by_name.location import UnityLocation
from lakelog.cold.by_name.log_view import LogView
from lakelog.cold.by_name.names import TableName
from lakelog.cold.schema import PARTITION_COLUMNS
from lakelog.cold.segment import SegmentFile
from lakelog.cold.store import unity_catalog
from lakelog.cold.store.storage import Storage
from lakelog.cold.store.unity_catalog import UnityCatalog
from lakelog.errors import (
    ColdTierAccessError,
    ColdTierRefusedError,
    ColdTierUnavailableError,
    ContradictionError,
)
from lakelog.hot.hot_log import HotSource
from lakelog.place import LogPlace, NamedRoot
from lakelog.values.record import OffsetAndTimestamp
from lakelog.values.topic_partition import TopicPartition
from tests.support.object_store import Fault, FaultyFront, s3_options

EPOCH_MS = 1_700_000_000_000
NAME = TableName("main", "logs-1", "größe.v2")


class Lying:
    """A table in a store, which a catalog knows: rows [0, 600) in three files."""

    def __init__(self, workspace: Workspace, front: FaultyFront) -> None:
        self.workspace = workspace
        self.url = f"s3://lakelog/{uuid4().hex}"
        self.options = s3_options(front.url)
        for start in (0, 200, 400):
            self.add(start)
        self.registered = Registered(self.url, uuid4().hex)
        workspace.tables[".".join(NAME)] = self.registered

    def add(self, start: int) -> None:
        rows = pa.table(
            {
                "partition": pa.array([0] * 200, pa.int32()),
                "segment": pa.array([0] * 200, pa.int64()),
                **{name: pa.concat_arrays(column.chunks) for name, column in _rows(start).items()},
            }
        )
        deltalake.write_deltalake(
            self.url,
            rows,
            mode="append",
            partition_by=PARTITION_COLUMNS,
            storage_options=Storage(self.url, self.options).delta_options(),
        )

    def slices(self, version: int = 2, end: int = 600) -> list[SegmentFile]:
        name = f"partition=0/segment=0/rows-0-{end}-{version:016x}"
        return [SegmentFile(0, 0, name, 1, end, 0, end, EPOCH_MS, EPOCH_MS + end)]

    def view(self) -> LogView:
        location = UnityLocation(UnityCatalog(self.workspace.url, "login"), NAME)
        return LogView(location, str(NAME), lambda paths: (2, set()))

    def either(self) -> EitherView:
        return EitherView(self.view(), None, str(NAME))


def _rows(start: int) -> dict[str, pa.ChunkedArray]:
    made = MadeUpRows().records(TopicPartition("orders", 0), start, start + 200)
    from made_up import batch_of

    table = pa.Table.from_batches([batch_of(made)])
    return {name: table[name] for name in table.column_names}


def offsets(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [n for batch in batches for n in batch.column("offset").to_pylist()]


@pytest.fixture
def lying(s3_front: FaultyFront, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lying]:
    monkeypatch.setattr(unity_catalog, "_HELD", {})
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_front.url)
    workspace = Workspace()
    yield Lying(workspace, s3_front)
    workspace.stop()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelog.base.back_off.ASK_AGAIN", BackOff(0.01, 0.01, tries=2))


def keys_asked(workspace: Workspace) -> list[Any]:
    return [body for path, _, body in workspace.asked if path.endswith("table-credentials")]


def test_it_is_read_with_keys_for_that_table(lying: Lying) -> None:
    view = lying.view()
    assert view.exists()
    assert [commit.version for commit in view.history(uuid4(), -1)] == [2, 1, 0]
    assert offsets(view.read(lying.slices(), 150, 450)) == list(range(150, 450))
    found = view.first_at_or_after(lying.slices(), EPOCH_MS + 321, 5)
    assert found == OffsetAndTimestamp(321, EPOCH_MS + 321)
    assert view.newest(lying.slices(), 0) == OffsetAndTimestamp(599, EPOCH_MS + 599)
    (measured,) = {row.of for row in view.measured_segments(2)}
    assert measured == (0, 0)
    asked = {"table_id": lying.registered.table_id, "operation": "READ"}
    assert keys_asked(lying.workspace) == [asked]


def test_the_catalog_says_how_far_it_goes_and_what_is_not_published_yet(
    lying: Lying, s3_front: FaultyFront
) -> None:
    lying.registered.latest = 1
    view = lying.view()
    assert [commit.version for commit in view.history(uuid4(), -1)] == [1, 0]
    assert view.news(uuid4(), 1) is None
    storage = Storage(lying.url, lying.options)
    commit = storage.read_bytes(f"{lying.url}/_delta_log/{2:020}.json")
    storage.delete_file(f"{lying.url}/_delta_log/{2:020}.json")
    storage.write_bytes(f"{lying.url}/_delta_log/_staged_commits/2.a.json", commit)
    lying.registered.latest, lying.registered.staged = 2, {2: "2.a.json"}
    lying.workspace.looked.clear()
    assert [commit.version for commit in view.news(uuid4(), 1)] == [2]
    assert len(lying.workspace.looked) == 1
    assert offsets(view.read(lying.slices(), 0, 600)) == list(range(600))


def test_keys_that_expire_in_the_middle_of_a_read_are_asked_for_again(
    lying: Lying, s3_front: FaultyFront
) -> None:
    view = lying.either()
    read = view.read(lying.slices(), 0, 600)
    first = next(read)
    s3_front.inject(Fault("GET", r"\.parquet", status=403))
    rest = offsets(read)
    assert first.column("offset").to_pylist() + rest == list(range(600))
    assert len(keys_asked(lying.workspace)) == 2


def test_a_grant_that_is_taken_away_is_said(lying: Lying, s3_front: FaultyFront) -> None:
    view = lying.either()
    read = view.read(lying.slices(), 0, 600)
    next(read)
    lying.workspace.grants.remove(SCHEMA)
    s3_front.inject(Fault("GET", r"\.parquet", status=403, times=None))
    with pytest.raises(ColdTierAccessError, match="no EXTERNAL USE SCHEMA"):
        list(read)
    lying.workspace.grants.remove(SELECT)
    with pytest.raises(ColdTierAccessError, match="no SELECT"):
        view.exists()


def test_a_task_without_a_grant_says_so_of_what_is_hot_no_more(
    lying: Lying, topic: Any, redis_url: str
) -> None:
    lying.workspace.tables["main.logs-1.orders"] = lying.registered
    root = NamedRoot("main.logs-1", tables_at=lying.workspace.url)
    tiers = LogPlace(HotSource(redis_url), root).task_tiers(topic)
    lying.workspace.grants.clear()
    assert not tiers.cold().files  # what is hot can be read all the same
    with pytest.raises(ColdTierAccessError, match=r"orders-0 is hot from offset 600 on.*no SELECT"):
        tiers.trimmed(topic.partition(0), 600)


@pytest.mark.usefixtures("impatient")
def test_a_catalog_that_is_down_is_waited_for(lying: Lying) -> None:
    view = lying.either()
    assert view.exists()
    lying.workspace.is_down = True
    with pytest.raises(ColdTierUnavailableError, match="503"):
        view.exists()
    # What was looked at is read on without it.
    assert offsets(view.read(lying.slices(), 0, 600)) == list(range(600))
    lying.workspace.is_down = False
    assert view.exists()


def test_another_table_of_that_name_is_noticed(lying: Lying) -> None:
    view = lying.either()
    assert view.exists()
    mine = lying.registered.table_id
    del lying.workspace.tables[".".join(NAME)]
    assert not view.exists()
    lying.registered.table_id = uuid4().hex
    lying.workspace.tables[".".join(NAME)] = lying.registered
    with pytest.raises(ContradictionError, match="UNDROP"):
        view.exists()
    lying.registered.table_id = mine
    assert view.exists()


def test_a_table_that_is_made_while_it_is_looked_for_is_found(
    lying: Lying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog is asked for its versions, which there are none of yet, and then by its name."""
    lying.registered.properties = {"delta.feature.catalogManaged": "supported"}
    view = lying.view()
    with pytest.raises(NotDirectError, match="does not tell the newest version"):
        view.exists()
    lying.registered.latest = 2
    made = lying.workspace.tables.pop(".".join(NAME))
    answer = lying.workspace.found

    def found(path: str) -> tuple[int, dict[str, Any]]:
        said = answer(path)
        lying.workspace.tables[".".join(NAME)] = made
        return said

    monkeypatch.setattr(lying.workspace, "found", found)
    assert view.exists()
    assert [commit.version for commit in view.history(uuid4(), -1)] == [2, 1, 0]


def test_what_only_spark_understands_is_left_to_it(lying: Lying) -> None:
    storage = Storage(lying.url, lying.options)
    protocol = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["rot13"],'
    storage.write_bytes(
        f"{lying.url}/_delta_log/{3:020}.json", f'{protocol}"writerFeatures":["rot13"]}}}}'.encode()
    )
    with pytest.raises(ColdTierRefusedError, match=r"Spark's own reader alone.*rot13"):
        lying.either().exists()


def test_a_check_says_how_tables_are_read(lying: Lying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNITY_CATALOG_URL", lying.workspace.url)
    root = NamedRoot("main.logs-1")
    assert "are read where they lie" in root.check()
    lying.workspace.grants.remove(SCHEMA)
    monkeypatch.setattr(unity_catalog, "_HELD", {})
    assert re.search("for Spark alone to read and write: .*no EXTERNAL USE SCHEMA", root.check())
    with pytest.raises(ColdTierRefusedError, match=r"no schema main\.others"):
        NamedRoot("main.others").check()


def test_keys_are_asked_for_each_table_not_for_the_root(lying: Lying, topic: Any) -> None:
    """Unity Catalog denies a path above a registered table."""
    root = f"s3://lakelog/{uuid4().hex}"
    vended = {"CREDENTIALS": "unity-catalog"}
    storage = Storage(root, vended)
    path = storage.table_path(topic)
    lying.workspace.tables["main.logs.orders"] = Registered(path, uuid4().hex)
    of_workspace = unity_catalog.PathKeys(root, UnityCatalog(lying.workspace.url))
    with pytest.raises(ColdTierAccessError, match=r"parent of a registered.*no table is regis"):
        of_workspace.ask()
    mine = unity_catalog.PathKeys(path, UnityCatalog(lying.workspace.url))
    assert mine.ask().values
    lying.workspace.grants.remove(SCHEMA)
    with pytest.raises(ColdTierAccessError, match="EXTERNAL USE SCHEMA on its schema too"):
        mine.ask()
    lying.workspace.grants = {SCHEMA, SELECT}
    with pytest.raises(ColdTierAccessError, match=f"no {LOCATION}"):
        mine.ask()

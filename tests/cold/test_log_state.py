"""What a table's log says, read by lakelog and by delta-rs: the same of any log."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold.added_file import plain_rows
from lakelog.cold.by_path import log_content, log_state
from lakelog.cold.by_path.log_content import Protocol
from lakelog.cold.by_path.log_state import LogState, open_log
from lakelog.cold.log_names import LAST_CHECKPOINT, LOG, checkpoint_names, commit_name
from lakelog.cold.schema import PARTITION_COLUMNS, TABLE_SCHEMA
from lakelog.cold.segment import UNKNOWN_TIMESTAMP_MS, file_name
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierRefusedError, ContradictionError

TIMES = [
    "2023-11-14T22:13:20.000Z",
    "2023-11-14T22:13:20.123Z",
    "1969-12-31T23:59:59.999Z",
    "2023-11-14T22:13:20.123456+00:00",
    "2023-11-14T22:13:20.123-08:00",
    "+10000-01-01T00:00:00.000Z",
    "no time",
    None,
    5,
]
offsets = st.integers(0, 2**53) | st.none()


def stats(records: Any, first: Any, last: Any, oldest: Any, newest: Any, value: bool) -> str:
    """As lakelog writes them; without what is None."""
    least = {"offset": first, "timestamp": oldest, "value": "}" if value else None}
    largest = {"offset": last, "timestamp": newest, "value": "x" if value else None}
    said = {
        "numRecords": records,
        "minValues": {name: one for name, one in least.items() if one is not None},
        "maxValues": {name: one for name, one in largest.items() if one is not None},
        "nullCount": {"offset": 0, "timestamp": 0},
    }
    return json.dumps(said, separators=(",", ":"))


plain_stats = st.builds(
    stats,
    st.integers(1, 1000),
    st.integers(0, 1000),
    st.integers(0, 2000),
    st.sampled_from(TIMES[:3]),
    st.sampled_from(TIMES[:3]),
    st.just(False),
)
odd_stats = st.builds(
    stats,
    st.integers(0, 9) | st.none(),
    offsets,
    offsets,
    st.sampled_from(TIMES),
    st.sampled_from(TIMES),
    st.booleans(),
) | st.sampled_from(["{}", None])


@st.composite
def adds(draw: st.DrawFn, of_stats: st.SearchStrategy[Any] = plain_stats | odd_stats) -> Any:
    number = draw(st.integers(0, 30))
    partition, segment = number % 3, 100 * (number // 7)
    name = draw(
        st.just(file_name("archive", 10 * number, 10 * number + 10, f"{number:032x}"))
        | st.just(f"part-{number}.parquet")
    )
    return {
        "path": f"partition={partition}/segment={segment}/{name}",
        "partitionValues": {"partition": str(partition), "segment": str(segment)},
        "size": 100 + number,
        "modificationTime": 1_700_000_000_000 + number,
        "dataChange": True,
        "stats": draw(of_stats),
    }


@st.composite
def commits(draw: st.DrawFn, of_stats: st.SearchStrategy[Any] = plain_stats | odd_stats) -> Any:
    """Of one version: actions that no version has twice."""
    added = draw(st.lists(adds(of_stats), max_size=6, unique_by=lambda add: add["path"]))
    paths = {add["path"] for add in added}
    removed = draw(st.lists(adds(), max_size=3, unique_by=lambda add: add["path"]))
    names = draw(st.lists(st.sampled_from(["a", "b", "lakelog/x/0/log_start"]), unique=True))
    return [
        {"commitInfo": {"lakelog.commit": draw(st.text("ab", max_size=3))}},
        *({"add": add} for add in added),
        *(
            {"remove": {"path": one["path"], "dataChange": True, "deletionTimestamp": 5}}
            for one in removed
            if one["path"] not in paths
        ),
        *({"txn": {"appId": name, "version": draw(st.integers(0, 2**53))}} for name in names),
    ]


class Table:
    """A table whose log is written by hand."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, path / LOG
        self.made = DeltaTable.create(
            path, pa.schema(TABLE_SCHEMA), partition_by=PARTITION_COLUMNS, name="orders"
        )
        self.version = 0

    def commit(self, actions: list[Any]) -> None:
        self.version += 1
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (self.log / commit_name(self.version)).write_text(text)

    def checkpoint(self, parts: int, clean_up: bool) -> None:
        """By delta-rs; in several parts as Spark writes it."""
        DeltaTable(self.path).create_checkpoint()
        (name,) = checkpoint_names(self.version)
        if parts > 1:
            rows = pq.read_table(self.log / name)
            (self.log / name).unlink()
            for number, part in enumerate(checkpoint_names(self.version, parts)):
                pq.write_table(
                    rows.take(pa.array(range(number, len(rows), parts), pa.int64())),
                    self.log / part,
                )
            said = {"version": self.version, "size": len(rows), "parts": parts}
            (self.log / LAST_CHECKPOINT).write_text(json.dumps(said))
        if clean_up:
            for path in self.log.glob("*.json"):
                if int(path.name[:20]) < self.version:
                    path.unlink()

    def opened(self, version: int | None = None) -> LogState:
        state = open_log(Storage(str(self.path.parent)), str(self.path), version)
        assert state is not None
        return state


def _first(start: int, end: int, segment: int) -> int:
    """The first record of a range of which nothing else is known: a gap lies before a segment."""
    return segment if start <= segment < end else start


def rows_by_delta_rs(table: DeltaTable) -> dict[str, Any]:
    """What the index should have of each file, by path; None: nothing says which offsets."""
    found = {}
    for add in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        name = add["path"].rpartition("/")[2]
        is_ours = name.startswith("archive-")
        start, end = map(int, name.split("-")[1:3]) if is_ours else (None, None)
        records, first, last = (
            add.get(name) for name in ("num_records", "min.offset", "max.offset")
        )
        if records == 0 and not is_ours:
            continue
        if (first if start is None else start) is None or (last if end is None else end) is None:
            found[add["path"]] = None
            continue
        oldest, newest = map(_ms, (add.get("min.timestamp"), add.get("max.timestamp")))
        found[add["path"]] = {
            "partition": add["partition.partition"],
            "segment": add["partition.segment"],
            "size_bytes": add["size_bytes"],
            "records": -1 if records is None else records,
            "start_offset": first if start is None else start,
            "end_offset": last + 1 if end is None else end,
            "min_timestamp_ms": -1 if oldest is None else oldest,
            "max_timestamp_ms": -1
            if records == 0
            else UNKNOWN_TIMESTAMP_MS
            if newest is None
            else newest,
            "modified_ms": add["modification_time"],
            "first": _first(start, end, add["partition.segment"]) if first is None else first,
            "last": -1 if records == 0 else end - 1 if last is None else last,
            "ours": is_ours,
        }
    return found


def _ms(time: datetime | None) -> int | None:
    if time is None:
        return None
    seconds = int(time.replace(microsecond=0).timestamp())
    return 1000 * seconds + time.microsecond // 1000


def check_same(state: LogState, table: DeltaTable) -> None:
    metadata, protocol = table.metadata(), table.protocol()
    assert state.version == table.version()
    assert state.protocol == Protocol(
        protocol.min_reader_version,
        tuple(protocol.reader_features or ()),
        tuple(protocol.writer_features or ()),
    )
    assert state.metadata is not None
    assert state.metadata.table_id == str(metadata.id)
    assert state.metadata.properties == metadata.configuration
    assert state.metadata.partition_columns == metadata.partition_columns
    names = ["a", "b", "lakelog/x/0/log_start"]
    known = {name: table.transaction_version(name) for name in names}
    assert state.transactions == {name: one for name, one in known.items() if one is not None}
    wanted = rows_by_delta_rs(table)
    if None in wanted.values():
        with pytest.raises(ContradictionError):
            state.files()
        return
    found = {row.pop("path"): row for row in state.files().columns.to_pylist()}
    for row in found.values():
        if not row["ours"]:  # it is stretched over a gap before its segment
            row["start_offset"] = row["first"]
    assert found == wanted


steps = st.lists(
    st.tuples(commits() | commits(plain_stats), st.sampled_from([0, 0, 0, 1, 3]), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=10)
@given(steps=steps, at_once=st.sampled_from([1, 4, 4096]), data=st.data())
def test_it_says_what_delta_rs_reads_in_it(steps, at_once, data):
    """Also piece by piece, and at an older version; plain files are read by the column."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(log_content, "_AT_ONCE", 2 * at_once)
        patched.setattr(log_state, "_WAITING", at_once)
        table = Table(Path(folder) / "table")
        going_on = table.opened()
        for actions, parts, clean_up in steps:
            table.commit(actions)
            content = log_state.read_commit(Storage(folder), str(table.path), table.version)
            assert content is not None
            for piece in log_content.commit_pieces(content):
                going_on.apply(piece)
            going_on.version = table.version
            if data.draw(st.booleans()):
                check_same(going_on, DeltaTable(table.path))
            if parts:
                table.checkpoint(parts, clean_up)
        anew = table.opened()
        for state in (going_on, anew):
            check_same(state, DeltaTable(table.path))
        with suppress(ContradictionError):
            assert going_on.files().columns.equals(anew.files().columns)
        oldest = min(int(path.name[:20]) for path in table.log.glob("*.json"))
        version = data.draw(st.integers(oldest, table.version))
        check_same(table.opened(version), DeltaTable(table.path, version=version))


@given(st.lists(adds(plain_stats), min_size=1, unique_by=lambda add: add["path"]))
@settings(max_examples=5)
def test_what_lakelog_wrote_is_read_by_the_column(added):
    ours = [add for add in added if "archive-" in add["path"]]
    read = []

    def noting(columns: Any) -> Any:
        read.append(plain_rows(columns))
        return read[-1]

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(log_content, "plain_rows", noting)
        table = Table(Path(folder) / "table")
        table.commit([{"add": add} for add in ours])
        table.checkpoint(1, clean_up=True)
        check_same(table.opened(), DeltaTable(table.path))
    assert sum(map(len, read)) == len(ours)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table(tmp_path / "table")
    for version in range(1, 6):
        table.commit([{"txn": {"appId": "a", "version": version}}])
        if version == 2:
            table.checkpoint(1, clean_up=False)
    return table


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: (table.log / commit_name(4)).unlink(),
        lambda table: (table.log / commit_name(4)).write_bytes(b""),
        lambda table: (table.log / commit_name(4)).write_text('{"txn":{"appId":"a"}}'),
        lambda table: (table.log / commit_name(4)).write_text('{"add":5}'),
        lambda table: (table.log / commit_name(4)).write_text('{"a":\n5}'),
        lambda table: (table.log / commit_name(4)).write_text('{"a":5},{"b":5}'),
        lambda table: (table.log / checkpoint_names(2)[0]).write_bytes(b"no Parquet"),
        lambda table: [path.unlink() for path in table.log.glob("*[012].*")],
    ],
)
def test_a_log_with_a_hole_or_damage_is_refused(table, damage):
    damage(table)
    with pytest.raises(ColdTierRefusedError):
        table.opened()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "5", '{"minValues":5}', "{}],[{}", "{},{}", '{"numRecords":"5"}', 7],
)
def test_statistics_that_are_none_count_as_not_said_and_hurt_no_other_file(table, text):
    """delta-rs (1.6.6) puts the statistics of the files after an empty text to other files."""

    def add(number: int, stats: Any) -> Any:
        name = file_name("archive", 10 * number, 10 * number + 10, f"{number:032x}")
        values = {"partition": "0", "segment": "0"}
        return {
            "add": {
                "path": f"partition=0/segment=0/{name}",
                "partitionValues": values,
                "size": 1,
                "modificationTime": 1,
                "stats": stats,
            }
        }

    sound = stats(7, 12, 18, TIMES[0], TIMES[0], False)
    table.commit([add(0, text), add(1, sound)])
    files = list(table.opened().files())
    assert [(file.records, file.max_timestamp_ms) for file in files] == [
        (-1, UNKNOWN_TIMESTAMP_MS),
        (7, 1_700_000_000_000),
    ]


def test_a_checkpoint_that_lacks_a_part_counts_as_none(table):
    table.checkpoint(3, clean_up=False)
    (table.log / checkpoint_names(5, 3)[1]).unlink()
    state = table.opened()
    assert (state.version, state.transactions) == (5, {"a": 5})


def test_of_nothing_there_is_nothing(tmp_path):
    storage = Storage(str(tmp_path))
    assert open_log(storage, str(tmp_path / "table")) is None
    (tmp_path / "table" / LOG).mkdir(parents=True)
    assert open_log(storage, str(tmp_path / "table")) is None


@pytest.mark.parametrize("what", ["gone", "stale", "damaged", "as it is"])
def test_a_store_is_listed_only_if_its_log_does_not_name_its_checkpoint(table, monkeypatch, what):
    hint = table.log / LAST_CHECKPOINT
    before = hint.read_text()
    table.checkpoint(1, clean_up=what == "stale")
    table.commit([{"txn": {"appId": "a", "version": 6}}])
    if what == "gone":
        hint.unlink()
    elif what == "stale":
        hint.write_text(before)
    elif what == "damaged":
        hint.write_text('{"version":null}')
    listed: list[str] = []
    list_files = Storage.list_files

    def listing(self: Storage, path: str, *, recursive: bool) -> Any:
        listed.append(path)
        return list_files(self, path, recursive=recursive)

    storage = Storage(str(table.path.parent))
    object.__setattr__(storage, "is_local", False)
    monkeypatch.setattr(Storage, "list_files", listing)
    state = open_log(storage, str(table.path))
    assert state is not None
    assert (state.version, state.transactions) == (6, {"a": 6})
    assert bool(listed) == (what != "as it is")


def test_a_hole_in_a_store_is_seen_without_a_list(table):
    (table.log / commit_name(4)).unlink()
    storage = Storage(str(table.path.parent))
    object.__setattr__(storage, "is_local", False)
    with pytest.raises(ColdTierRefusedError, match="no version 4"):
        open_log(storage, str(table.path))


def test_a_log_that_is_cleaned_up_meanwhile_is_read_anew(table, monkeypatch):
    file_names = Storage.file_names

    def listing(self: Storage, path: str) -> Any:
        found = file_names(self, path)
        monkeypatch.undo()
        shutil.copy(table.log / commit_name(5), table.path / "kept")
        table.checkpoint(1, clean_up=True)
        (table.log / checkpoint_names(2)[0]).unlink()
        return found

    monkeypatch.setattr(Storage, "file_names", listing)
    assert table.opened().transactions == {"a": 5}

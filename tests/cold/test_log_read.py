"""What a table's log says: the same as delta-rs says of it, in columns, rows and registers."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold.added_file import statistics_of
from lakelog.cold.by_path import delta_log
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.by_path.log_file import registers_of
from lakelog.cold.log_names import LAST_CHECKPOINT, LOG, checkpoint_names, commit_name
from lakelog.cold.properties import table_properties
from lakelog.cold.registers import LogStart, ReservedEnd, app_id
from lakelog.cold.schema import PARTITION_COLUMNS, TABLE_SCHEMA
from lakelog.cold.segment import UNKNOWN_TIMESTAMP_MS, file_name
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierRefusedError, ContradictionError
from lakelog.values.topic import Topic

TOPIC = Topic("orders", UUID(int=1), partitions=2)
REGISTERS = (LogStart(0), LogStart(1), ReservedEnd(1))
NAMES = [app_id(TOPIC.topic_id, register) for register in REGISTERS]
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
    names = draw(st.lists(st.sampled_from(["a", *NAMES]), unique=True))
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
    """A table of the topic whose log is written by hand."""

    def __init__(self, root: Path) -> None:
        self.storage = Storage(str(root))
        self.path = Path(self.storage.table_path(TOPIC))
        self.log = self.path / LOG
        self.path.mkdir(parents=True)
        self.made = DeltaTable.create(
            self.path,
            pa.schema(TABLE_SCHEMA),
            partition_by=PARTITION_COLUMNS,
            configuration=table_properties(TOPIC),
            raise_if_key_not_exists=False,
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

    def opened(self) -> DeltaLog:
        log = DeltaLog(self.storage, TOPIC)
        log.refresh()
        return log


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


def check_same(log: DeltaLog, table: DeltaTable) -> None:
    assert log.version == table.version()
    known = {
        register: version
        for number in range(2)
        for register in registers_of(number)
        if (version := table.transaction_version(app_id(TOPIC.topic_id, register))) is not None
    }
    assert log.registers() == known
    wanted = rows_by_delta_rs(table)
    if None in wanted.values():
        with pytest.raises(ContradictionError):
            log.files()
        return
    found = {row.pop("path"): row for row in log.files().columns.to_pylist()}
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
@given(steps=steps, most=st.sampled_from([1, 100]), data=st.data())
def test_it_says_what_delta_rs_reads_in_it(steps, most, data):
    """Also commit by commit."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(delta_log, "MAX_COMMITS_READ", most)
        table = Table(Path(folder))
        going_on = table.opened()
        for actions, parts, clean_up in steps:
            table.commit(actions)
            if data.draw(st.booleans()):
                going_on.refresh()
                check_same(going_on, DeltaTable(table.path))
            if parts:
                table.checkpoint(parts, clean_up)
        going_on.refresh()
        anew = table.opened()
        for log in (going_on, anew):
            check_same(log, DeltaTable(table.path))
        with suppress(ContradictionError):
            assert going_on.files().columns.equals(anew.files().columns)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table(tmp_path)
    for version in range(1, 6):
        table.commit([{"txn": {"appId": NAMES[0], "version": version}}])
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


def test_statistics_are_made_again_as_they_were_written(table):
    text = stats(7, 12, 18, TIMES[0], TIMES[1], False)
    empty = '{"numRecords":0}'
    adds_of = [(1, text), (2, empty), (3, None)]
    names = [file_name("archive", 10 * n, 10 * n + 10, f"{n:032x}") for n, _ in adds_of]
    table.commit(
        [
            {
                "add": {
                    "path": f"partition=0/segment=0/{name}",
                    "partitionValues": {"partition": "0", "segment": "0"},
                    "size": 1,
                    "modificationTime": 1,
                    "dataChange": True,
                    "stats": said,
                }
            }
            for name, (_, said) in zip(names, adds_of, strict=True)
        ]
    )
    found = statistics_of(pa.table(DeltaTable(table.path).get_add_actions(flatten=True)))
    assert [found[f"partition=0/segment=0/{name}"] for name in names] == [text, empty, "{}"]


def test_of_nothing_there_is_nothing(tmp_path):
    log = DeltaLog(Storage(str(tmp_path)), TOPIC)
    log.refresh()
    assert log.version == -1
    Path(log.path, LOG).mkdir(parents=True)
    log.refresh()
    assert (log.version, len(log.files()), log.registers()) == (-1, 0, {})


@pytest.mark.parametrize("number", [1, 3])
def test_a_log_without_its_first_commits_is_refused_and_no_table_is_made_over_it(tmp_path, number):
    table = Table(tmp_path)
    for version in range(1, 6):
        table.commit([{"txn": {"appId": "a", "version": version}}])
    for path in sorted(table.log.iterdir())[:number]:
        path.unlink()
    with pytest.raises(ColdTierRefusedError):
        table.opened()


def test_a_log_that_is_cleaned_up_meanwhile_is_read_anew(table, monkeypatch):
    file_names = Storage.file_names

    def listing(self: Storage, path: str) -> Any:
        found = file_names(self, path)
        monkeypatch.undo()
        table.checkpoint(1, clean_up=True)
        (table.log / checkpoint_names(2)[0]).unlink()
        return found

    monkeypatch.setattr(Storage, "file_names", listing)
    assert table.opened().registers() == {LogStart(0): 5}

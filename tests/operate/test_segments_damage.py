"""Each kind of damage, done for real: found, named, and everything else still looked through."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.parquet.file_writer import sealed_end
from lakelog.cold.parquet.footers import SEAL_BYTES
from lakelog.cold.schema import PARTITION_COLUMNS
from lakelog.errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from lakelog.operate.check.finding import MOST, Findings, Kind
from lakelog.values.config import EntryFormat


def only(said: list[str], *patterns: str) -> None:
    """Each pattern is matched by one finding, and there is no other."""
    left = list(said)
    for pattern in patterns:
        found = [line for line in left if re.search(pattern, line)]
        assert len(found) == 1, (pattern, said)
        left.remove(found[0])
    assert left == []


# -- hot: the entries --------------------------------------------------------------------------


def test_a_changed_field(bench):
    bench.appends(10, count=1, entry_format=EntryFormat.FIELDS)

    def change(entries: list[Any]) -> list[Any]:
        entries[4][1][b"value"] = b"v4v4v4v4v5"
        return entries

    bench.rewrite_stream(change)
    only(bench.said(), r"entry 4-1 .* its CRC-32C is")


def test_an_entry_whose_id_counts_wrong(full):
    full.rewrite_stream(
        lambda entries: [(b"259-19" if i == b"259-20" else i, f) for i, f in entries]
    )
    only(
        full.said(),
        r"entry 259-19 .* it holds 20 records, its id says 19",
        r"offsets 240\.\.240 \| have no entry",
    )


def test_entries_that_overlap(full):
    full.rewrite_stream(lambda entries: [*entries[:3], (b"260-21", entries[2][1]), *entries[3:]])
    said = full.said()
    assert any("entry 260-21 | holds offsets that the entry before it holds too" in s for s in said)
    assert any(
        "entry 279-20 | holds offsets that the entry before it holds too: 260" in s for s in said
    )


def test_an_entry_of_somebody_else(full):
    full.client.xadd(full.keys.stream, {"hello": "world"}, id="400-1")
    assert full.findings() == []  # past the log end: nothing anybody reads, until it is appended to
    full.client.xdel(full.keys.stream, "400-1")
    full.rewrite_stream(lambda entries: [*entries[:-1], (entries[-1][0], {b"hello": b"world"})])
    assert any("entry 399-20 | was not written by lakelog" in s for s in full.said())


def test_an_entry_that_the_trim_missed(full):
    full.rewrite_stream(lambda entries: [(b"100-1", {b"x": b"y"}), *entries])
    said = full.said()
    assert any("entry 100-1 | lies wholly below the local log start 200" in s for s in said)


def test_a_deleted_gap_entry(full):
    full.lose_tail()
    full.append(20)
    full.client.xdel(full.keys.stream, full.entries()[-2][0])
    said = full.said()
    assert any("have no entry, and no gap entry says" in line for line in said)
    assert any(":state | declares the offsets 400.." in line for line in said)


# -- hot: what is said of them -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "by", "pattern"),
    [
        (2, 7, r"segment \d+ \| says bytes \d+, but its entries have bytes \d+"),
        (3, 1, r"segment \d+ \| says first timestamp \d+, but its first entry has"),
        (4, -1, r"segment \d+ \| says largest timestamp \d+, but its entries have"),
        (4, 9, r"segment \d+ \| says largest timestamp \d+, but its entries have"),
    ],
)
def test_a_closed_segment_that_lies(full, place, by, pattern):
    (text, score) = full.client.zrange(full.keys.segments, 1, 1, withscores=True)[0]
    numbers = [int(part) for part in text.split()]
    numbers[place] += by
    full.client.zrem(full.keys.segments, text)
    full.client.zadd(full.keys.segments, {" ".join(map(str, numbers)): score})
    found = full.said()
    also = [r":state \| says closed_bytes \d+, but the closed segments have"] if place == 2 else []
    only(found, pattern, *also)


def test_a_segment_with_other_ends(full):
    (text, score) = full.client.zrange(full.keys.segments, 1, 1, withscores=True)[0]
    base, end, *rest = (int(part) for part in text.split())
    full.client.zrem(full.keys.segments, text)
    full.client.zadd(full.keys.segments, {" ".join(map(str, (base, end - 5, *rest))): score})
    said = full.said()
    assert any(
        f":segments | has no segment for the offsets {end - 5}..{end - 1}" in s for s in said
    )
    assert any("covers only partly" in line for line in said)


@pytest.mark.parametrize("text", ["hello", "1 2 3", "x y z 1 2 3 4", ""])
def test_a_segment_that_is_none(full, text):
    full.client.zadd(full.keys.segments, {text: 5})
    assert any("which is no segment" in line for line in full.said())


def test_a_segment_under_another_score(full):
    (text, score) = full.client.zrange(full.keys.segments, 1, 1, withscores=True)[0]
    full.client.zadd(full.keys.segments, {text: score + 1})
    assert any("which is no segment" in line for line in full.said())


@pytest.mark.parametrize(
    ("field", "value", "pattern"),
    [
        (
            "log_end",
            390,
            r"entry 399-20 \| holds offsets 380\.\.399, which segment \d+ covers only",
        ),
        ("log_end", 420, r"offsets 400\.\.419 \| have no entry"),
        ("log_end", 250, r":state \| says the log ends at 250, but the cold tier holds it up to"),
        ("log_end", "many", r":state \| should hold 1 whole numbers as log_end, not b'many'"),
        ("local_log_start", 150, r"offsets 150\.\.199 \| have no entry"),
        ("local_log_start", 220, r"entry 219-20 \| lies wholly below the local log start 220"),
        ("closed_bytes", 5, r":state \| says closed_bytes 5, but the closed segments have"),
        ("producer_count", 3, r":state \| says producer_count 3, but there are producer_count 20"),
        ("segment", "1 2", r":state \| should hold 6 whole numbers as segment"),
        ("index", "0 0 0", r":state \| says the largest timestamp is 0, but a record has"),
        ("largest_entry", 10, r":state \| says the largest entry has 10 bytes, but one has"),
        ("gaps", "1-x", r":state \| has among its gaps b'1-x'"),
    ],
)
def test_a_state_that_lies(full, field, value, pattern):
    full.client.hset(full.keys.state, field, value)
    said = full.said()
    assert [line for line in said if re.search(pattern, line)], said


@pytest.mark.parametrize(
    ("offset", "score", "pattern"),
    [
        (245, 1_700_000_000_245, "is the last offset of no entry"),
        (100, 1, "lies below the local log start 200"),
        (900, 1_800_000_000_000, "lies past the log end 400"),
        (210, 1_700_000_000_390, "stands behind a higher offset"),
    ],
)
def test_a_time_index_of_other_offsets(full, offset, score, pattern):
    full.client.zadd(full.keys.times, {str(offset): score})
    assert any(re.search(rf":times, offset {offset} \| {pattern}", s) for s in full.said())


# -- cold: the files ---------------------------------------------------------------------------


def test_a_changed_header_and_timestamp_type(full):
    file = full.files()[-1]

    def change(table: pa.Table) -> pa.Table:
        names = table.column_names
        kinds = pa.array([1] * table.num_rows, pa.int32())
        table = table.set_column(names.index("timestampType"), "timestampType", kinds)
        headers = pa.array([[{"key": "h", "value": None}]] * table.num_rows, table["headers"].type)
        return table.set_column(names.index("headers"), "headers", headers)

    full.rewrite_file(file, change)
    only(
        full.said(),
        rf"offsets {file.start_offset}..{file.end_offset - 1} \| .* in timestampType, headers",
    )


def test_tombstones_that_the_footer_does_not_count(full):
    file = full.files()[0]

    def change(table: pa.Table) -> pa.Table:
        none = pa.nulls(table.num_rows, pa.binary())
        return table.set_column(table.column_names.index("value"), "value", none)

    full.rewrite_file(file, change)
    only(full.said(), r"says in its footer that it has 0 tombstones .* but it has \d+ and None")


def test_a_missing_file_and_the_rest_goes_on(full):
    gone, damaged = full.files()[:2]
    full.path(gone).unlink()
    full.swap_rows(damaged)
    only(
        full.said(),
        rf"cold \| {gone.path} \| is missing: it was deleted behind the table's back",
        rf"{damaged.path} \| holds rows out of order",
    )


@pytest.mark.parametrize("place", ["page", "footer", "cut", "empty"])
def test_a_damaged_file(full, place):
    file = full.files()[1]
    path = full.path(file)
    content = bytearray(path.read_bytes())
    with pq.ParquetFile(path) as parquet:
        values = parquet.metadata.row_group(0).column(parquet.schema_arrow.names.index("value"))
    if place == "cut":
        content = content[:-20]
    elif place == "empty":
        content = bytearray()
    else:
        end_of_values = values.data_page_offset + values.total_compressed_size
        content[{"page": end_of_values - 9, "footer": len(content) - 6}[place]] ^= 0xFF
    path.write_bytes(content)
    only(full.said(), rf"cold \| {file.path} \| is not the Parquet file that was written")


def test_a_file_without_a_column(full):
    file = full.files()[0]
    full.rewrite_file(file, lambda table: table.drop_columns(["headers"]))
    only(full.said(), rf"{file.path} \| .* it has no column headers")


def test_a_file_with_nulls_for_offsets(full):
    file = full.files()[0]

    def change(table: pa.Table) -> pa.Table:
        field = pa.field("offset", pa.int64())
        offsets = pc.if_else(pc.equal(table["offset"], 3), None, table["offset"])
        return table.set_column(0, field, offsets)

    full.rewrite_file(file, change)
    only(full.said(), r"holds rows without an offset or a timestamp")


def test_rows_of_another_segment(full):
    first, second = full.files()[:2]
    moved = Path(full.table.path) / second.path
    content = moved.read_bytes()
    shutil.copy(full.path(first), moved)
    full.forge(second, size=moved.stat().st_size)
    said = full.said()
    assert content != moved.read_bytes()
    assert any("hold the same offsets: " in line for line in said)
    assert any("but its segment and name allow" in line for line in said)
    assert any(f"no row has the offsets {second.start_offset}.." in line for line in said)


# -- cold: what is said of them ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("forged", "pattern"),
    [
        ({"min_offset": 3}, "says the smallest offset is 3, but it is 0"),
        ({"max_offset": 20}, r"says the largest offset is 20, but it is \d+"),
        ({"max_offset": 35_000}, r"says the largest offset is 35000, but it is \d+"),
        (
            {"min_timestamp": "2023-11-14T22:13:21.000Z"},
            "says the smallest timestamp is 1700000001000, but it is 1700000000000",
        ),
        (
            {"max_timestamp": "2030-01-01T00:00:00.000Z"},
            r"says the largest timestamp is 1893456000000, but it is \d+",
        ),
        ({"numRecords": 7}, r"says rows 7, but the file has rows \d+"),
        ({"numRecords": 7_000}, r"says rows 7000, but the file has rows \d+"),
        ({"numRecords": 0}, r"says rows 0, but the file has rows \d+"),
        ({"size": 17}, r"says bytes 17, but the file has bytes \d+"),
    ],
)
def test_an_add_action_that_lies(full, forged, pattern):
    file = full.files()[0]
    full.forge(file, **forged)
    said = full.said()
    where = rf"cold \| {file.path}, in the table's log \| "
    assert [line for line in said if re.search(where + pattern, line)], said


@pytest.mark.parametrize("column", ["offset", "timestamp"])
@pytest.mark.parametrize("edge", ["smallest", "largest"])
def test_a_footer_that_lies(full, column, edge):
    """Row-group statistics are what seeks trust within a file: forged byte by byte."""
    file = full.files()[1]
    path = full.path(file)
    with pq.ParquetFile(path) as parquet:
        at = parquet.schema_arrow.names.index(column)
        statistics = parquet.metadata.row_group(0).column(at).statistics
        true = statistics.min_raw if edge == "smallest" else statistics.max_raw
    content = path.read_bytes()
    footer = len(content) - 8 - struct.unpack("<i", content[-8:-4])[0]
    before, after = struct.pack("<q", true), struct.pack("<q", true + 5_000)
    assert before in content[footer:]
    forged = sealed_end(content[footer:].replace(before, after))
    path.write_bytes(content[: footer - SEAL_BYTES] + forged)
    said = full.said()
    shown = true if column == "offset" else true // 1000
    pattern = rf"{file.path}, row group 0 \| says the {edge} {column} is \d+, but it is {shown}"
    assert [line for line in said if re.search(pattern, line)], said


def test_inserted_rows(full):
    rows = pa.Table.from_batches(
        full.table.read(full.files(), 10, 15, columns=full_columns()),
    )
    rows = rows.add_column(0, "segment", pa.array([0] * 5, pa.int64()))
    rows = rows.add_column(0, "partition", pa.array([0] * 5, pa.int32()))
    write_deltalake(full.table.path, rows, mode="append", partition_by=PARTITION_COLUMNS)
    only(full.said(), r"cold \| partition=0/segment=0/.* \| hold the same offsets: 10\.\.14")


def full_columns() -> list[str]:
    from lakelog.cold.schema import FILE_SCHEMA

    return list(FILE_SCHEMA.names)


@pytest.mark.parametrize(
    ("predicate", "gone"),
    [
        ("offset = 7", "7"),
        ("offset >= 100 AND offset < 105", r"100\.\.104"),
        ("offset = 299", "299"),
    ],
)
def test_deleted_rows(full, predicate, gone):
    DeltaTable(full.table.path).delete(predicate)
    only(full.said(), rf"cold \| .* \| no row has the offsets {gone}, though nothing says")


def test_a_restored_older_version(full):
    version = full.table.snapshot().version
    full.archive()
    full.trim(400)
    DeltaTable(full.table.path).restore(version)
    said = full.said()
    assert any(r"the end of the table | no row has the offsets 300..399" in s for s in said)


def test_a_table_that_was_never_there_any_more(full, make_bench):
    """Another process, that has not seen it: nothing is archived, and hot begins at 200."""
    shutil.rmtree(full.table.path)
    full.table._log = DeltaLog(full.table.storage, full.topic)
    full.table._latest = type(full.table._latest)()
    only(full.said(), r"both \| between 0 and 200 \| no tier holds the offsets 0\.\.199: cold ends")


def test_trimmed_beyond_what_is_archived(full):
    full.trim(340)
    only(
        full.said(),
        r"both \| between 300 and 340 \| no tier holds the offsets 300\.\.339: cold ends at 300",
    )


# -- in all ------------------------------------------------------------------------------------


def test_a_dropped_topic_is_an_error(full):
    full.hot.topics().delete("orders")
    with pytest.raises(UnknownTopicOrPartitionError, match="orders"):
        full.findings()
    full.hot.topics().create("orders", 1)
    with pytest.raises(UnknownTopicIdError):
        full.findings()


def test_damage_outside_what_is_named_is_not_judged(full):
    full.client.xdel(full.keys.stream, "399-20")
    full.path(full.files()[0]).unlink()
    assert full.findings(start_offset=200, end_offset=300) == []
    assert full.findings(tiers=("hot",), end_offset=380) == []


def test_findings_are_bounded():
    findings = Findings("hot", ("orders", 0))
    for number in range(MOST + 5):
        findings.add(Kind.CORRUPT, "here", str(number))
    assert len(findings.all()) == MOST + 1
    assert findings.all()[-1].what == "5 more were found; mend these first"

"""The index finds files; the writer and the footers say what is in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import MadeUpRows, archive, batch_of

from lakelog.cold import schema
from lakelog.cold.added_file import AddedFile, _named
from lakelog.cold.added_file import index_of as index_of_files
from lakelog.cold.by_path.segment_writer import write_segment_file
from lakelog.cold.change import HotRange
from lakelog.cold.parquet.footers import Footer, FooterCache, read_footer
from lakelog.cold.segment import (
    COLUMNS,
    UNKNOWN_TIMESTAMP_MS,
    SegmentIndex,
    archived_start,
    file_name,
    is_ours,
)
from lakelog.cold.store.storage import Storage
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import ColdTierError, ContradictionError
from lakelog.values.config import MIB
from lakelog.values.record import Record

UNIQUE = "0123456789abcdef" * 2


def row(partition: int, first: int, last: int, max_ms: int = 0, *, ours: bool = True) -> dict:
    kind = file_name("archive", first, last + 1, UNIQUE) if ours else "part-00000.snappy.parquet"
    return {
        "partition": partition,
        "segment": 0,
        "path": f"partition={partition}/segment=0/{kind}",
        "size_bytes": 1,
        "records": last - first + 1,
        "start_offset": first,
        "end_offset": last + 1,
        "min_timestamp_ms": 0,
        "max_timestamp_ms": max_ms,
        "first": first,
        "last": last,
        "ours": ours,
    }


def index_of(rows: list[dict]) -> SegmentIndex:
    return SegmentIndex(pa.Table.from_pylist(rows, schema=COLUMNS))


def test_names_carry_the_range():
    name = file_name("archive", 5, 2**53, UNIQUE)
    assert is_ours(name)
    assert archived_start(f"partition=0/segment=5/{name}") == 5
    clean = file_name("clean", 5, 9, UNIQUE)
    assert is_ours(clean)
    assert archived_start(clean) is None
    assert not is_ours("part-00000-0b7.c000.snappy.parquet")


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 20), st.integers(0, 9)),
        max_size=12,
    ),
    st.integers(0, 2),
    st.integers(0, 90),
    st.integers(0, 30),
    st.integers(0, 9),
)
def test_look_ups_agree_with_a_list_also_where_files_overlap(
    ranges, partition, offset, length, timestamp
):
    rows = [row(number, first, first + more, ms) for number, first, more, ms in ranges]
    index = index_of(rows)
    mine = [row for row in rows if row["partition"] == partition]

    at = index.file_at(partition, offset)
    above = [row for row in mine if row["last"] >= offset]
    if above:
        assert at is not None
        assert at.start_offset == min(row["first"] for row in above)
    else:
        assert at is None

    between = index.files_between(partition, offset, offset + length)
    assert [file.start_offset for file in between] == sorted(
        row["first"] for row in above if row["first"] < offset + length
    )
    newer = list(index.first_with_timestamp(partition, timestamp, offset))
    assert [file.start_offset for file in newer] == sorted(
        row["first"] for row in above if row["max_timestamp_ms"] >= timestamp
    )
    newest = list(index.newest_first(partition, offset))
    assert [file.max_timestamp_ms for file in newest] == sorted(
        (row["max_timestamp_ms"] for row in above), reverse=True
    )
    assert len(index) == len(rows)
    assert index.missing(["nowhere"]) == {"nowhere"}
    assert index.missing(row["path"] for row in rows) == set()


@pytest.mark.parametrize(
    "wrong", [{"partition": 2**31}, {"segment": -(2**63) - 1}, {"path": "\ud800"}]
)
def test_rows_that_no_column_holds_are_refused(wrong):
    file = AddedFile("part-0.parquet", 0, 0, 1, 7, records=1, first=0, last=0)
    with pytest.raises(ContradictionError, match="not what was written"):
        index_of_files([file._replace(**wrong)])


NAMES = st.builds(
    file_name,
    st.sampled_from(["archive", "clean", "quarantine", "part"]),
    st.integers(0, 2**53),
    st.integers(0, 2**53),
    st.sampled_from([UNIQUE, UNIQUE.upper(), "x"]),
) | st.text(max_size=9)


@given(st.lists(st.tuples(st.sampled_from(["", "partition=0/segment=0/", "a\nb/"]), NAMES)))
def test_names_of_many_files_say_what_those_of_few_say(names):
    paths = ["".join(name) for name in names]
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for many in (-1, len(paths)):
            patch.setattr("lakelog.cold.added_file._MANY", many)
            found.append([column.tolist() for column in _named(paths)])
    assert found[0] == found[1]


@pytest.mark.parametrize("many", [-1, 9])
def test_a_name_with_an_offset_that_is_none_is_refused(many, monkeypatch):
    monkeypatch.setattr("lakelog.cold.added_file._MANY", many)
    made_up = file_name("archive", 10**19, 10**19 + 1, UNIQUE)
    with pytest.raises(ContradictionError, match="not what was written"):
        index_of_files([AddedFile(made_up, 0, 0, 1, 7, records=1, first=0, last=0)])


def test_files_with_rows_of_any_size_have_small_row_groups(tmp_path, topic):
    sizes = [20, 3_000, 10, 9 * MIB]

    def rows_of(hot_range: HotRange):
        at = 0
        for size, count in zip(sizes, [150_000, 20_000, 70_000, 4], strict=True):
            yield batch_of(
                [Record("orders", 0, at + n, at, value=b"x" * size) for n in range(count)]
            )
            at += count

    add = HotRange(topic.partition(0), topic.topic_id, 0, 0, 240_004)
    storage = Storage(str(tmp_path))
    written = write_segment_file(add, topic=topic, storage=storage, rows_of=rows_of).file

    path = Path(storage.table_path(topic)) / written.path
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert sum(group.num_rows for group in groups) == written.records == 240_004
    assert max(group.num_rows for group in groups) <= schema.ROW_GROUP_ROWS
    assert max(group.total_byte_size for group in groups) <= schema.ROW_GROUP_BYTES + MIB
    assert len(groups) < 40  # and not too small either
    footer = footer_of(path)
    assert [group.first for group in footer.row_groups][1:] == [
        group.last + 1 for group in footer.row_groups
    ][:-1]
    assert path.stat().st_size == written.size_bytes


def test_times_that_delta_cannot_write_are_looked_up_in_the_file(make_table, topic):
    far_ms = 253_402_300_800_000  # the year 10000
    table = make_table(MadeUpRows(times={5: far_ms, 6: -1}))
    applied = table.apply(archive(topic, ColdSnapshot(), 10), ColdSnapshot())
    assert applied.files[0].max_timestamp_ms == UNKNOWN_TIMESTAMP_MS
    assert list(applied.snapshot.files) == list(applied.files)
    assert table.offset_for_timestamp(applied.snapshot, 0, far_ms, 0) == (5, far_ms)
    assert table.offset_for_timestamp(applied.snapshot, 0, far_ms + 1, 0) is None
    assert table.max_timestamp(applied.snapshot, 0, 0) == (5, far_ms)


@pytest.mark.parametrize("offsets", [[0, 2, 1], [0, 1, 1, 2], [1, 2, 0], [0, 1, 2, 3], []], ids=str)
def test_a_source_out_of_order_or_range_is_refused(tmp_path, topic, offsets):
    def rows_of(hot_range: HotRange):
        yield batch_of([Record("orders", 0, offset, 0) for offset in offsets])

    add = HotRange(topic.partition(0), topic.topic_id, 0, 0, 3)
    with pytest.raises(ContradictionError, match="is not written"):
        write_segment_file(add, topic=topic, storage=Storage(str(tmp_path)), rows_of=rows_of)
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_full_disk_is_named_and_leaves_the_sources_errors_alone(tmp_path, topic, monkeypatch):
    def rows_of(hot_range: HotRange):
        yield batch_of([Record("orders", 0, offset, 0) for offset in range(3)])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    add = HotRange(topic.partition(0), topic.topic_id, 0, 0, 3)
    with pytest.raises(ColdTierError, match=r"archive-.*No space left.*has room"):
        write_segment_file(add, topic=topic, storage=Storage(str(tmp_path)), rows_of=rows_of)
    assert list(tmp_path.rglob("*.parquet")) == []


def footer_of(path: Path) -> Footer:
    with pa.OSFile(str(path)) as source:
        return read_footer(source)


def test_footers_are_kept_up_to_a_bound(tmp_path):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.Table.from_batches([batch_of([Record("orders", 0, 0, 0)])]), path)
    footer = footer_of(path)
    cache = FooterCache(limit_bytes=3 * footer.size_bytes)
    for name in "abc":
        cache.put(name, footer)
    assert cache.get("a") is footer  # now b is the one used longest ago
    cache.put("d", footer)
    assert [name for name in "abcd" if cache.get(name) is not None] == ["a", "c", "d"]

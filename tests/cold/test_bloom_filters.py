"""Bloom filters of keys: no record is hidden by one, and one that is damaged is not asked."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold import rows as cold_rows
from lakelog.cold.parquet import bloom_filters
from lakelog.cold.parquet.bloom_filters import filter_options, hashes, may_hold
from lakelog.cold.parquet.file_writer import write_file
from lakelog.cold.parquet.footers import read_footer
from lakelog.cold.parquet.segment_reader import SegmentReader
from lakelog.cold.schema import FILE_SCHEMA, writer_options
from lakelog.cold.segment import SegmentFile, file_name
from lakelog.cold.store.storage import Storage
from lakelog.values.config import SETTINGS, TopicConfig

NO_VALUES = pa.schema([])


def written(folder: Path, keys: Sequence[bytes | None], *, filtered: bool = True) -> SegmentFile:
    """A file of one record for each key, its offsets from 0 on."""
    count = len(keys)
    columns: dict[str, Any] = {
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array(range(count), pa.int64()).cast(FILE_SCHEMA.field("timestamp").type),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array([b"v%d" % n for n in range(count)], pa.binary()),
    }
    for field in FILE_SCHEMA:
        columns.setdefault(field.name, pa.nulls(count, field.type))
    columns["timestampType"] = pa.array([0] * count, pa.int32())
    table = pa.table([columns[name] for name in FILE_SCHEMA.names], schema=FILE_SCHEMA)
    name = file_name("archive", 0, count, uuid4().hex)
    write_file(
        Storage(str(folder)),
        f"{folder}/{name}",
        cold_rows.row_groups(table.to_batches()),
        FILE_SCHEMA,
        writer_options(NO_VALUES, "zstd"),
        filtered=filtered,
    )
    size_bytes = (folder / name).stat().st_size
    return SegmentFile(0, 0, name, size_bytes, count, 0, count, 0, count, 0)


def footer_of(folder: Path, file: SegmentFile) -> Any:
    return read_footer(pa.OSFile(str(folder / file.path)))


def reader_of(folder: Path) -> SegmentReader:
    return SegmentReader(Storage(str(folder)), str(folder))


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_rows, "ROW_GROUP_ROWS", 32)


@given(
    keys=st.lists(st.none() | st.binary(max_size=4), min_size=1, max_size=120),
    wanted=st.frozensets(st.binary(max_size=4), min_size=1, max_size=4),
    filtered=st.booleans(),
    seed=st.integers(0, 9),
)
def test_what_is_found_is_what_a_list_says(tmp_path_factory, keys, wanted, filtered, seed):
    chance = random.Random(seed)
    folder = tmp_path_factory.mktemp("files")
    file = written(folder, keys, filtered=filtered)
    wanted |= {key for key in chance.sample(keys, min(2, len(keys))) if key is not None}
    start = chance.randint(0, len(keys))
    end = chance.randint(start, len(keys))
    found = reader_of(folder).with_keys([file], start, end, wanted)
    groups = [(group.first, group.last + 1) for group in footer_of(folder, file).row_groups]
    having = [
        (max(start, low), min(end, high))
        for low, high in groups
        if any(key in wanted for key in keys[low:high]) and low < end and high > start
    ]
    inside = {offset for low, high in having for offset in range(low, high)}
    assert {offset for one in found for offset in range(one.start, one.end)} == inside


def test_a_filter_says_no_to_nearly_all_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(cold_rows, "ROW_GROUP_ROWS", 64 * 1024)
    keys = [os.urandom(16) for _ in range(20_000)]
    file = written(tmp_path, keys)
    data = (tmp_path / file.path).read_bytes()
    (group, *_) = footer_of(tmp_path, file).row_groups
    place = group.key_filter
    bits = data[place.start : place.end]
    inside = keys[: group.rows]
    assert all(may_hold(bits, place, hashes([key])) for key in inside)
    others = [os.urandom(16) for _ in range(5_000)]
    said_yes = sum(may_hold(bits, place, hashes([key])) for key in others)
    assert said_yes < 2 * bloom_filters.FALSE_POSITIVES * len(others)
    assert may_hold(bits, place, hashes([others[0], inside[7]]))


def test_nothing_is_decoded_where_the_filters_say_no(tmp_path, monkeypatch):
    keys = [b"%08d" % n for n in range(500)]
    file = written(tmp_path, keys)
    decoded: list[int] = []
    stored = SegmentReader._stored

    def counted(self: SegmentReader, part: Any, *more: Any) -> Any:
        decoded.append(part.group.index)
        return stored(self, part, *more)

    monkeypatch.setattr(SegmentReader, "_stored", counted)
    reader = reader_of(tmp_path)
    groups = footer_of(tmp_path, file).row_groups
    for wanted in range(0, 500, 50):
        decoded.clear()
        (found,) = reader.with_keys([file], 0, 500, frozenset({keys[wanted]}))
        assert found.start <= wanted < found.end
        assert len(decoded) <= 1 + len(groups) // 4


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_a_filter_that_lost_a_bit_hides_no_record(tmp_path, bit):
    keys = [b"%08d" % n for n in range(100)]
    file = written(tmp_path, keys)
    places = [group.key_filter for group in footer_of(tmp_path, file).row_groups]
    path = tmp_path / file.path
    whole = path.read_bytes()
    for place in places:
        for at in range(place.start, place.end):
            damaged = bytearray(whole)
            damaged[at] &= ~(1 << bit)
            if bytes(damaged) == whole:
                continue
            path.write_bytes(bytes(damaged))
            for key in (keys[0], keys[50], keys[-1]):
                found = reader_of(tmp_path).with_keys([file], 0, 100, frozenset({key}))
                assert any(one.start <= int(key) < one.end for one in found)
            break  # its first byte with that bit; the checksum is of all


def test_a_filter_without_a_checksum_is_not_asked(tmp_path):
    keys = [b"%08d" % n for n in range(100)]
    file = written(tmp_path, keys)
    table = pq.read_table(tmp_path / file.path)
    path = tmp_path / "part-0.parquet"
    pq.write_table(table, path, bloom_filter_options={"key": {"ndv": 100, "fpp": 0.05}})
    assert pq.read_metadata(path).row_group(0).column(3).bloom_filter_offset
    assert all(group.key_filter is None for group in read_footer(pa.OSFile(str(path))).row_groups)


def test_many_row_groups_have_their_checksums_far_in_front_of_the_footer(tmp_path, monkeypatch):
    monkeypatch.setattr(cold_rows, "ROW_GROUP_ROWS", 4)
    keys = [b"%08d" % n for n in range(2_400)]
    file = written(tmp_path, keys)
    groups = footer_of(tmp_path, file).row_groups
    assert len(groups) == 600
    assert all(group.key_filter is not None for group in groups)


def test_other_readers_read_the_file_as_any_other(tmp_path):
    keys = [b"%08d" % n for n in range(100)]
    file = written(tmp_path, keys)
    assert pq.read_table(tmp_path / file.path)["key"].to_pylist() == keys
    assert pq.ParquetFile(tmp_path / file.path, page_checksum_verification=True).read().num_rows


def test_a_file_has_filters_where_its_topic_says_so_and_the_writer_can(tmp_path, monkeypatch):
    assert SETTINGS["lakelog.key.bloom.filter"].default == "true"
    assert not TopicConfig({"lakelog.key.bloom.filter": "false"})["lakelog.key.bloom.filter"]
    without = written(tmp_path, [b"a"] * 50, filtered=False)
    assert all(group.key_filter is None for group in footer_of(tmp_path, without).row_groups)
    keyless = written(tmp_path, [None] * 50)
    assert all(group.key_filter is None for group in footer_of(tmp_path, keyless).row_groups)
    assert filter_options(1, "key")
    monkeypatch.setattr(bloom_filters, "can_be_written", lambda: False)
    assert filter_options(1, "key") == {}

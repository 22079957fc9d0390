"""One changed byte of a Parquet file is named or harmless, and never the end of the process."""

from __future__ import annotations

import io
import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flip_process import RECORDS
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.by_path.segment_writer import write_segment_file
from lakelog.cold.change import HotRange
from lakelog.cold.parquet.file_writer import sealed_end
from lakelog.cold.parquet.footers import SEAL_BYTES, SEALED, FooterBytes, parse_footer, read_footer
from lakelog.cold.schema import FILE_SCHEMA, WRITER_OPTIONS
from lakelog.cold.store.storage import Storage
from lakelog.values.record import RECORDS as RECORDS_SCHEMA
from lakelog.values.topic import Topic

MASKS = [0x01, 0x80, 0xFF]
FOREIGN = "partition=0/segment=0/part-0.parquet"


def rows() -> pa.RecordBatch:
    offsets = range(RECORDS)
    return pa.RecordBatch.from_pydict(
        {
            "offset": offsets,
            "timestamp": [1_700_000_000_000_000 + 1000 * n for n in offsets],
            "timestampType": [0] * RECORDS,
            "key": [b"k%d" % (n % 3) for n in offsets],
            "value": [None if n == 7 else b"v" * n for n in offsets],
            "headers": [[{"key": "a", "value": b"b"}]] * RECORDS,
        },
        schema=RECORDS_SCHEMA,
    )


def ours(root: Path) -> tuple[str, str]:
    """The root and path of a file of lakelog's own."""
    topic = Topic("orders", UUID(int=7), 1)
    storage = Storage(str(root))
    add = HotRange(topic.partition(0), topic.topic_id, 0, 0, RECORDS)
    written = write_segment_file(add, topic=topic, storage=storage, rows_of=lambda _: [rows()])
    return storage.table_path(topic), written.file.path


def foreign(root: Path, **options: object) -> tuple[str, str]:
    """Those of somebody else's, with statistics on all columns, dictionaries and no checksums."""
    horizon = pa.nulls(RECORDS, FILE_SCHEMA.field("delete_horizon").type)
    table = pa.Table.from_arrays([*rows().columns, horizon], schema=FILE_SCHEMA)
    path = root / FOREIGN
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, row_group_size=80, **options)
    return str(root), FOREIGN


FILES = {
    "ours": ours,
    "foreign": foreign,
    "foreign with page indexes": lambda root: foreign(root, write_page_index=True, version="2.6"),
}


def footer_start(data: bytes) -> int:
    return len(data) - 8 - int(struct.unpack("<I", data[-8:-4])[0])


def flipped(root: str, path: str, flips: list[tuple[int, int]]) -> list[str]:
    script = Path(__file__).with_name("flip_process.py")
    done = subprocess.run(
        [sys.executable, str(script), root, path],
        input=json.dumps(flips),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes: list[str] = json.loads(done.stdout)
    return outcomes


def check(root: str, path: str, flips: list[tuple[int, int]], *, ours: bool) -> None:
    start = footer_start((Path(root) / path).read_bytes())
    for flip, outcome in zip(flips, flipped(root, path, flips), strict=True):
        assert outcome in {"read", "named"}, (flip, outcome)
        if ours and flip[0] >= start:
            assert outcome == "named", flip


@pytest.mark.parametrize("which", sorted(FILES))
def test_some_changed_bytes_of_a_file(tmp_path, which):
    root, path = FILES[which](tmp_path)
    size = (Path(root) / path).stat().st_size
    start = footer_start((Path(root) / path).read_bytes())
    draw = random.Random(5)
    places = draw.sample(range(start, size), 40) + draw.sample(range(start), 25)
    flips = [(place, draw.choice(MASKS)) for place in places]
    check(root, path, flips, ours=which == "ours")


@pytest.mark.slow
@pytest.mark.parametrize("which", sorted(FILES))
def test_each_changed_byte_of_a_file(tmp_path, which):
    root, path = FILES[which](tmp_path)
    data = (Path(root) / path).read_bytes()
    start, draw = footer_start(data), random.Random(5)
    flips = [(place, draw.choice(MASKS)) for place in range(start)]
    flips += [(p, mask) for p in range(start, len(data)) for mask in draw.sample(MASKS, 2)]
    check(root, path, flips, ours=which == "ours")


# -- footers, without a child: nothing of pyarrow is asked before they hold together -----------


def made(**metadata: str) -> bytes:
    out = io.BytesIO()
    horizon = pa.nulls(RECORDS, FILE_SCHEMA.field("delete_horizon").type)
    with pq.ParquetWriter(out, FILE_SCHEMA, **WRITER_OPTIONS) as writer:
        writer.write_table(pa.Table.from_arrays([*rows().columns, horizon], schema=FILE_SCHEMA))
        writer.add_key_value_metadata(metadata)
    return out.getvalue()


PLAIN = made()
SEALED_FILE = sealed_end(made(**SEALED))


def footer_of(data: bytes, size_bytes: int | None = None) -> object:
    return read_footer(pa.BufferReader(data), size_bytes)


@given(st.data())
def test_a_changed_byte_of_a_sealed_footer_is_noticed(data):
    at = data.draw(st.integers(footer_start(SEALED_FILE) - SEAL_BYTES, len(SEALED_FILE) - 1))
    damaged = bytearray(SEALED_FILE)
    damaged[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(pa.ArrowInvalid):
        footer_of(bytes(damaged))


@given(st.integers(1, len(SEALED_FILE)), st.booleans())
def test_a_file_of_another_length_is_noticed(cut, longer):
    data = SEALED_FILE + bytes(cut) if longer else SEALED_FILE[:-cut]
    with pytest.raises(pa.ArrowInvalid, match=r"bytes, the table's log says"):
        footer_of(data, len(SEALED_FILE))


@given(st.binary(max_size=300))
def test_bytes_that_are_no_footer_are_refused(data):
    with pytest.raises(pa.ArrowInvalid):
        parse_footer(FooterBytes(data), 1000)
    for end in (b"PAR1", struct.pack("<I4s", len(data), b"PAR1")):
        with pytest.raises(pa.ArrowInvalid):
            footer_of(b"PAR1" + data + end)


def test_a_footer_without_its_seal_says_that_it_had_one():
    with pytest.raises(pa.ArrowInvalid, match="says that it has a checksum"):
        footer_of(made(**SEALED))


def test_what_is_read_of_a_footer_is_what_pyarrow_reads():
    ours, theirs = footer_of(SEALED_FILE), pq.read_metadata(io.BytesIO(SEALED_FILE))
    group = theirs.row_group(0)
    (found,) = ours.row_groups
    columns = [group.column(at) for at in range(group.num_columns)]
    assert ours.columns == tuple(column.path_in_schema for column in columns)
    assert (found.rows, found.size_bytes) == (group.num_rows, group.total_byte_size)
    assert found.compressed_bytes == sum(column.total_compressed_size for column in columns)
    assert found.compression == "zstd"
    offset, time = (column.statistics for column in columns[:2])
    assert found.offsets == (offset.min_raw, offset.max_raw)
    assert found.times_us == (time.min_raw, time.max_raw)
    assert pq.read_table(io.BytesIO(SEALED_FILE)).equals(pq.read_table(io.BytesIO(PLAIN)))

"""Rows of others that decode to far more than they take in the file are read in bounded pieces."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.cold.parquet.segment_reader import BATCH_BYTES, SegmentReader
from lakelog.cold.record_batches import cut_rows, row_bytes
from lakelog.cold.schema import FILE_SCHEMA
from lakelog.cold.segment import SegmentFile
from lakelog.cold.store.storage import Storage
from lakelog.values.config import KIB, MIB

ROWS = 96
PATH = "partition=0/segment=0/part-0.parquet"


def written(root: Path, offsets: list[int]) -> SegmentFile:
    """A file of somebody else's whose rows all have the same value and header, of 1 MiB in all."""
    value, header = bytes(512 * KIB), bytes(512 * KIB)
    table = pa.Table.from_pydict(
        {
            "offset": offsets,
            "timestamp": [1_000 * offset for offset in offsets],
            "timestampType": [0] * ROWS,
            "key": [b"k"] * ROWS,
            "value": [value] * ROWS,
            "headers": [[{"key": "h", "value": header}]] * ROWS,
            "delete_horizon": [None] * ROWS,
        },
        schema=FILE_SCHEMA,
    )
    path = root / PATH
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, use_dictionary=True, dictionary_pagesize_limit=2 * MIB)
    assert path.stat().st_size < MIB
    return SegmentFile(0, 0, PATH, path.stat().st_size, ROWS, 0, ROWS, 0, 0)


@pytest.mark.parametrize("order", ["ascending", "shuffled"])
def test_a_value_that_stands_once_for_many_rows(tmp_path, order):
    offsets = list(range(ROWS))
    if order == "shuffled":
        random.Random(1).shuffle(offsets)
    file = written(tmp_path, offsets)
    batches = list(SegmentReader(Storage(str(tmp_path)), str(tmp_path)).read([file], 10, ROWS))
    assert [n for batch in batches for n in batch.column("offset").to_pylist()] == [
        *range(10, ROWS)
    ]
    assert max(batch.nbytes for batch in batches) <= BATCH_BYTES
    assert {len(value) for batch in batches for value in batch["value"].to_pylist()} == {512 * KIB}


def test_rows_are_as_large_as_their_plain_columns():
    rows = pa.RecordBatch.from_pydict(
        {"value": [b"x" * 10, None, b"yy"], "headers": [[], [{"key": "k", "value": b"12"}], []]},
        schema=pa.schema([FILE_SCHEMA.field("value"), FILE_SCHEMA.field("headers")]),
    )
    plain = row_bytes(rows)
    encoded = rows.set_column(0, "value", rows.column(0).dictionary_encode())
    assert (plain - plain.min()).tolist() == [8, 1, 0]
    assert row_bytes(encoded).tolist() == plain.tolist()
    assert [piece.num_rows for piece in cut_rows(encoded, 60)] == [1, 2]
    assert [piece.num_rows for piece in cut_rows(rows, 1)] == [3]  # bounded by who read them


def test_an_index_outside_its_dictionary_is_refused():
    indices = pa.array([0, 5], pa.int32())
    broken = pa.DictionaryArray.from_arrays(indices, pa.array([b"a"], pa.binary()), safe=False)
    batch = pa.RecordBatch.from_arrays([broken], names=["value"])
    with pytest.raises(pa.ArrowInvalid, match="its dictionary does not have"):
        list(cut_rows(batch, 100))

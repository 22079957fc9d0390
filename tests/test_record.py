"""Records as objects, against the rows that Arrow gives."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lakelog.record import RECORDS, Record, TimestampType, TopicPartition, to_records

ORDERS_1 = TopicPartition("orders", 1)
data = st.none() | st.binary(max_size=3)
rows = st.lists(
    st.tuples(
        st.integers(-1, 2**43),
        st.sampled_from(TimestampType),
        data,
        data,
        st.lists(st.tuples(st.text(max_size=2), data), max_size=3),
    ),
    max_size=9,
)


@given(rows=rows, start=st.integers(0, 3), length=st.integers(0, 9), chunks=st.integers(1, 3))
def test_rows_come_as_records(rows, start, length, chunks):
    batch = pa.RecordBatch.from_pylist(
        [
            {
                "offset": offset,
                "timestamp": time_ms * 1000,
                "timestampType": int(kind),
                "key": key,
                "value": value,
                "headers": [{"key": name, "value": content} for name, content in headers],
            }
            for offset, (time_ms, kind, key, value, headers) in enumerate(rows)
        ],
        RECORDS,
    ).slice(start, length)
    expected = [
        Record("orders", 1, offset, time_ms, key, value, tuple(headers), kind)
        for offset, (time_ms, kind, key, value, headers) in enumerate(rows)
    ][start : start + length]
    assert to_records(ORDERS_1, batch) == expected
    assert to_records(ORDERS_1, pa.Table.from_batches([batch] * chunks)) == expected * chunks
    for record in to_records(ORDERS_1, batch):
        assert isinstance(record.timestamp_type, TimestampType)
        assert hash(record) == hash(expected[record.offset - start])


def test_a_record_is_a_value_that_does_not_change():
    record = Record("orders", 1, 7, 1_000, b"k", None, (("h", b"1"), ("h", b"2")))
    assert record == pickle.loads(pickle.dumps(record)) == copy.deepcopy(record)
    assert record != replace(record, offset=8)
    with pytest.raises(AttributeError):
        record.offset = 8  # type: ignore[misc]
    with pytest.raises(AttributeError):
        record.another = 8  # type: ignore[attr-defined]
    assert record.header("h") == b"2"
    assert repr(record).startswith("Record(topic='orders', partition=1, offset=7, ")
    match record:
        case Record(topic, partition, offset):
            assert (topic, partition, offset) == ("orders", 1, 7)

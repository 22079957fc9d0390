"""Records as objects, against the rows that Arrow gives."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lakelog.values.record import (
    RECORDS,
    Record,
    TimestampType,
    to_records,
)
from lakelog.values.topic_partition import TopicPartition

ORDERS_1 = TopicPartition("orders", 1)
data = st.none() | st.binary(max_size=3)
rows = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1, 2**40)),  # how many offsets before it are left out
        st.integers(-1, 2**43),
        st.sampled_from(TimestampType),
        data,
        data,
        st.lists(st.tuples(st.text(max_size=2), data), max_size=3),
    ),
    max_size=9,
)


def records_of(rows):
    found, offset = [], 0
    for left_out, time_ms, kind, key, value, headers in rows:
        offset += left_out
        found.append(Record("orders", 1, offset, time_ms, key, value, tuple(headers), kind))
        offset += 1
    return found


def batch_of(records):
    return pa.RecordBatch.from_pylist(
        [
            {
                "offset": record.offset,
                "timestamp": record.timestamp_ms * 1000,
                "timestampType": int(record.timestamp_type),
                "key": record.key,
                "value": record.value,
                "headers": [{"key": name, "value": content} for name, content in record.headers],
            }
            for record in records
        ],
        RECORDS,
    )


@given(rows=rows, start=st.integers(0, 3), length=st.integers(0, 9), chunks=st.integers(1, 3))
def test_rows_come_as_records(rows, start, length, chunks):
    batch = batch_of(records_of(rows)).slice(start, length)
    expected = records_of(rows)[start : start + length]
    assert to_records(ORDERS_1, batch) == expected
    wider = batch.append_column("delete_horizon", pa.nulls(len(batch)))
    assert to_records(ORDERS_1, wider) == expected
    assert to_records(ORDERS_1, pa.Table.from_batches([batch] * chunks)) == expected * chunks
    for record, other in zip(to_records(ORDERS_1, batch), expected, strict=True):
        assert isinstance(record.timestamp_type, TimestampType)
        assert hash(record) == hash(other)
        # A copy: kept, it does not hold the whole batch.
        assert {type(record.key), type(record.value)} <= {bytes, type(None)}


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

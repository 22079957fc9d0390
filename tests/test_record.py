"""Records as objects, against the rows that Arrow gives."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

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

"""`Producer.send_batch`: columns in, columns out, and exact words on what failed."""

import os

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.errors import (
    InvalidTimestampError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
)
from lakelog.ingest.partitioner import partition_of_key


def test_each_row_goes_where_its_metadata_says(tier, make_producer):
    tier.topics.create("t", 3)
    count = 20_000
    table = pa.table(
        {
            "value": [f"value {n}" for n in range(count)],
            "key": [None if n % 5 == 0 else f"key {n % 97}" for n in range(count)],
            "timestamp_ms": list(range(count)),
        }
    )
    with make_producer(tier) as producer:
        metadata = producer.send_batch("t", table)
    rows = metadata.to_arrow().to_pylist()
    stored = {(r.partition, r.offset): r for p in range(3) for r in tier.records("t", p)}
    assert len(stored) == count
    for n, row in enumerate(rows):
        record = stored[row["partition"], row["offset"]]
        assert (record.value, record.timestamp_ms) == (b"value %d" % n, n)
        assert row["timestamp_ms"] == n
        if n % 5:
            assert row["partition"] == partition_of_key(b"key %d" % (n % 97), 3)


@given(
    rows=st.lists(
        st.tuples(st.none() | st.binary(max_size=3), st.none() | st.integers(0, 2)), max_size=40
    ),
    chunk=st.integers(1, 9),
)
@settings(max_examples=12)
def test_order_within_a_partition_is_input_order(redis_client, tier, make_producer, rows, chunk):
    redis_client.flushall()
    tier.topics.create("t", 3)
    table = pa.table(
        {
            "value": pa.array([b"%d" % n for n in range(len(rows))], pa.binary()),
            "key": pa.array([key for key, _ in rows], pa.binary()),
            "partition": pa.array([partition for _, partition in rows], pa.int32()),
        }
    )
    table = pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)
    with make_producer(tier) as producer:
        metadata = list(producer.send_batch("t", table))
    placed = {p: [b"%d" % n for n, m in enumerate(metadata) if m.partition == p] for p in range(3)}
    assert placed == {p: tier.values("t", p) for p in range(3)}
    for (_, partition), found in zip(rows, metadata, strict=True):
        assert partition in {None, found.partition}


def test_fields_entries_are_cut_into_calls_that_redis_takes(tier, make_producer):
    tier.topics.create("t", config={"lakelog.entry.format": "fields"})
    metadata = make_producer(tier).send_batch("t", [b"%d" % n for n in range(1000)])
    assert [m.offset for m in metadata] == list(range(1000))
    assert tier.values("t") == [b"%d" % n for n in range(1000)]


def test_a_batch_larger_than_the_buffer_goes_through(tier, make_producer):
    tier.topics.create("t", 2)
    values = [os.urandom(1000) for _ in range(500)]
    with make_producer(tier, buffer_memory=50_000) as producer:
        metadata = producer.send_batch("t", values)
    assert sorted(tier.values("t", 0) + tier.values("t", 1)) == sorted(values)
    assert len(metadata) == 500


def test_a_partition_that_is_not_there_is_refused_before_anything_is_written(tier, make_producer):
    tier.topics.create("t", 2)
    producer = make_producer(tier)
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send_batch("t", [{"value": b"a"}, {"value": b"b", "partition": 2}])
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send_batch("t", [b"a"], partition=7)
    assert tier.values("t", 0) + tier.values("t", 1) == []


def test_what_failed_and_what_was_written_is_told_by_row(tier, make_producer):
    tier.topics.create("t", 2)
    producer = make_producer(tier)
    records = [
        {"value": b"%d" % n, "partition": n % 2, "timestamp_ms": 2**45 if n == 5 else n}
        for n in range(10)
    ]
    with pytest.raises(InvalidTimestampError, match="row 5 of the batch") as raised:
        producer.send_batch("t", records)
    error = raised.value
    assert (error.batch.written, error.batch.not_written, error.batch.unknown) == (5, 5, 0)
    assert error.batch.not_written_rows.to_pylist() == [1, 3, 5, 7, 9]
    assert error.batch.unknown_rows.to_pylist() == []
    assert [row for row, _, _ in error.record_errors] == [5]
    assert tier.values("t", 0) == [b"0", b"2", b"4", b"6", b"8"]
    assert tier.values("t", 1) == []
    producer.flush()


def test_a_record_too_large_stops_the_batch_and_names_its_row(tier, make_producer):
    tier.topics.create("t", config={"max.message.bytes": 2000})
    producer = make_producer(tier)
    values = [b"%d" % n for n in range(20)]
    values[7] = os.urandom(3000)
    with pytest.raises(RecordTooLargeError, match="row 7 of the batch") as raised:
        producer.send_batch("t", values)
    assert (raised.value.index, raised.value.batch.not_written) == (7, 20)
    assert tier.values("t") == []
    assert producer.send_batch("t", values[:7])[6].offset == 6

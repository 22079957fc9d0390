"""What Kafka's clients write is read here, and what is written here they read."""

from __future__ import annotations

import pytest
from recorded_batches import ROWS

from lakelog.codec import EntryId, decode, encode
from lakelog.codec.kafka_batch import CODECS, BatchHeader, empty_batches, placed
from lakelog.codec.kafka_entry import batches_of, kafka_entry
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import RECORDS, to_records
from lakelog.values.topic_partition import TopicPartition

CREATE_TIME, LOG_APPEND_TIME = 1, 2  # as librdkafka numbers them

#: Few, which are written one by one, and many; what compresses, and what does not.
MANY = [(1_700_000_000_000 + n % 7, b"k%d" % n, b"v" * (n % 90), []) for n in range(2_000)] + ROWS


def rows_of(entry) -> list:
    records = decode([(EntryId(entry.record_count - 1, entry.record_count), entry.fields)])
    return [
        (one.timestamp_ms, one.key, one.value, list(one.headers))
        for one in to_records(TopicPartition("t", 0), records)
    ]


@pytest.fixture(scope="module")
def broker():
    pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
    from mock_broker import MockBroker

    return MockBroker()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("rows", [ROWS, MANY], ids=["few", "many"])
def test_what_librdkafkas_producer_writes_is_read(broker, codec, rows):
    sent = broker.send(f"sent-{codec}-{len(rows)}", rows, compression_type=codec)

    entries = [kafka_entry(one) for one in sent]

    assert [entry.fields[3] for entry in entries] == sent
    assert [row for entry in entries for row in rows_of(entry)] == rows
    assert BatchHeader.parse(sent[-1]).codec == codec


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("rows", [ROWS, MANY], ids=["few", "many"])
def test_librdkafkas_consumer_reads_entries(broker, compression, rows):
    topic = f"entries-{compression.value}-{len(rows)}"
    broker.create(topic)
    for entry in encode(rows, EntryFormat.KAFKA, compression):
        assert broker.produce(topic, b"".join(placed(entry.fields[3], 0))) == 0

    found = broker.consume(topic, len(rows))

    assert found == [(offset, CREATE_TIME, *row) for offset, row in enumerate(rows)]


def test_librdkafkas_consumer_reads_an_append_time(broker):
    broker.create("stamped")
    (entry,) = encode(ROWS, EntryFormat.KAFKA, Compression.ZSTD)
    broker.produce("stamped", b"".join(placed(entry.fields[3], 0, 1_800_000_000_000)))

    assert broker.consume("stamped", 4) == [
        (offset, LOG_APPEND_TIME, 1_800_000_000_000, *row[1:]) for offset, row in enumerate(ROWS)
    ]


@pytest.fixture(scope="module")
def records():
    return pytest.importorskip("kafka.record", reason="pip install kafka-python")


@pytest.mark.parametrize("codec", ["none", "gzip"])  # it has no others of its own
@pytest.mark.parametrize("rows", [ROWS, MANY], ids=["few", "many"])
def test_what_kafka_python_writes_is_read(records, codec, rows):
    builder = records.MemoryRecordsBuilder(2, CODECS.index(codec), 1 << 24)
    for timestamp_ms, key, value, headers in rows:
        assert builder.append(timestamp_ms, key, value, headers) is not None
    builder.close()

    assert rows_of(kafka_entry(bytes(builder.buffer()))) == rows


def test_kafka_python_reads_batches_with_holes_gaps_and_append_times(records):
    rows, (entry,) = ROWS * 20, encode(ROWS * 20, EntryFormat.ARROW, Compression.NONE)
    log = decode([(EntryId(139, 80), entry.fields)]).filter([n % 5 > 1 for n in range(80)])
    stamped = decode([(EntryId(299, 80), [*entry.fields, b"t", b"1800000000000"])])
    read = read_by(
        records,
        *batches_of(log),
        *empty_batches(140, 220),
        *batches_of(stamped.slice(0, 3)),
    )

    assert read == [
        *((60 + n, 0, *row[:3], list(row[3])) for n, row in enumerate(rows) if n % 5 > 1),
        *((220 + n, 1, 1_800_000_000_000, *row[1:3], row[3]) for n, row in enumerate(ROWS[:3])),
    ]


def test_kafka_python_reads_large_logs_in_several_batches(records):
    (entry, *more) = encode(MANY, EntryFormat.ARROW, Compression.NONE)
    assert not more
    log = decode([(EntryId(len(MANY) - 1, len(MANY)), entry.fields)])
    assert log.schema == RECORDS

    batches = batches_of(log, max_bytes=16_384)

    assert len(batches) > 5
    assert max(map(len, batches)) <= 16_384
    assert read_by(records, *batches) == [(offset, 0, *row) for offset, row in enumerate(MANY)]


def read_by(records, *batches: bytes) -> list:
    found, memory = [], records.MemoryRecords(b"".join(batches))
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc()
        found += [
            (one.offset, one.timestamp_type, one.timestamp, one.key, one.value, one.headers)
            for one in batch
        ]
    return found

"""What a read by name brings to the driver is bounded, however well the records compress."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.classic.dataframe import DataFrame
from spark_log import SparkLog

from lakelog.cold.by_name import runs as windows
from lakelog.values.config import KIB

CODECS = ["lz4", "zstd"]
WINDOW_BYTES = BATCH_BYTES = 512 * KIB
MAX_BYTES = 4 * WINDOW_BYTES
FIXED_BYTES = 100  # what a record takes besides, at most


pytestmark = [pytest.mark.usefixtures("through_spark"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a thirtieth of the bytes."""
    for name in ("WINDOW_BYTES", "BATCH_BYTES", "MAX_BYTES"):
        assert getattr(windows, name) == 32 * globals()[name]
        monkeypatch.setattr(windows, name, globals()[name])


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """What queries handed to this process, in order."""
    tables: list[pa.Table] = []
    to_arrow = DataFrame.toArrow

    def listening(self: DataFrame) -> pa.Table:
        tables.append(to_arrow(self))
        return tables[-1]

    monkeypatch.setattr(DataFrame, "toArrow", listening)
    return tables


def archived(log: SparkLog, values: list[bytes], codec: str) -> None:
    """Records of these values, with a key and a header each, in the table alone."""
    log.create()
    records = [
        {"value": v, "key": b"k%d" % n, "headers": [("n", b"h")]} for n, v in enumerate(values)
    ]
    with log.lakelog.producer(compression_type=codec) as producer:
        for start in range(0, len(values), 50):
            producer.send_batch(log.name, records[start : start + 50], partition=0)
    log.archive()
    assert log.lakelog.log(log.name).offsets()[0].local_log_start == len(values)


def read(log: SparkLog, values: list[bytes], start: int = 0) -> list[pa.RecordBatch]:
    """All that lies there, which must be the values."""
    unified = log.lakelog.log(log.name)
    files = unified.table.snapshot().files.of_partition(0)
    batches = list(unified.table.read(files, start, len(values)))
    table = pa.Table.from_batches(batches)
    assert table["value"].to_pylist() == values[start:]
    assert table["key"].to_pylist() == [b"k%d" % n for n in range(start, len(values))]
    assert set(map(str, table["headers"].to_pylist())) == {"[{'key': 'n', 'value': b'h'}]"}
    return batches


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_take_nothing_where_they_are_stored(log, brought, codec):
    values = [b"%06d" % n + bytes(32 * KIB) for n in range(200)]
    archived(log, values, codec)
    files = log.lakelog.log(log.name).table.snapshot().files
    assert sum(file.size_bytes for file in files) * 50 < sum(map(len, values))
    brought.clear()
    batches = read(log, values)
    assert max(table.nbytes for table in brought) <= MAX_BYTES + 200 * FIXED_BYTES
    assert max(batch.nbytes for batch in batches) <= BATCH_BYTES + 200 * FIXED_BYTES


def test_large_records_among_small_ones(log, brought):
    values = [bytes(1300 * KIB if n == 60 else 30 * KIB if n % 4 == 0 else 9) for n in range(300)]
    archived(log, values, "zstd")
    brought.clear()
    read(log, values)
    assert max(table.nbytes for table in brought) <= MAX_BYTES + 300 * FIXED_BYTES
    assert len(brought) <= 3 * sum(map(len, values)) // BATCH_BYTES


def test_a_record_larger_than_all_bounds_comes_by_itself(log, brought):
    values = [b"", bytes(MAX_BYTES + KIB), b"after"]
    log.create()
    with log.lakelog.producer(compression_type="zstd") as producer:
        for value in values:
            producer.send(log.name, value, timestamp_ms=1_700_000_000_000).result()
    log.archive()
    unified = log.lakelog.log(log.name)
    brought.clear()
    assert [record.value for record in unified.read(0).records()] == values
    assert max(table.nbytes for table in brought) <= len(values[1]) + 3 * FIXED_BYTES


def test_records_of_one_size_are_asked_for_once(log, brought):
    values = [b"%0200d" % n for n in range(6_000)]
    archived(log, values, "lz4")
    brought.clear()
    read(log, values)
    assert [table.num_rows for table in brought] == [4096, 1904]
    brought.clear()
    read(log, values, 5_999)
    assert [table.num_rows for table in brought] == [1]

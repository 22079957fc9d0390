"""Topics that take only what their columns say: by every way in, and nothing else is held up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lakelog import Lakelog
from lakelog.errors import DeliveryError, InvalidConfigError, InvalidRecordError
from lakelog.spark.sink_rows import TaskRows
from lakelog.values.config import TopicConfig

SETTINGS = {
    "lakelog.value.columns": "n int NOT NULL, s string DEFAULT 'none'",
    "lakelog.value.columns.enforce": "true",
}
GOOD, WRONG = [b'{"n":1}', None, b'{"n":2,"s":"x"}'], [b'{"s":"x"}', b"no JSON", b'{"n":"1"}']


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        yield lake


def values(lake: Lakelog, topic: str = "orders") -> list[bytes | None]:
    return lake.log(topic).read(0).to_arrow()["value"].to_pylist()


@pytest.mark.parametrize("entry_format", ["auto", "arrow", "fields", "kafka"])
@pytest.mark.parametrize("times", [1, 40])
def test_a_producers_other_records_are_appended(
    lake: Lakelog, entry_format: str, times: int
) -> None:
    lake.topics.create("orders", 1, {**SETTINGS, "lakelog.entry.format": entry_format})
    with lake.producer(linger_ms=1000) as producer:
        sent = [
            (value, producer.send("orders", value, key=b"k"))
            for _ in range(times)
            for value in [*GOOD, *WRONG]
        ]
        with pytest.raises(DeliveryError, match="surely not in the log"):
            producer.flush()
        told = {value for value, future in sent if future.exception() is None}
        errors = {type(future.exception()) for value, future in sent if value in WRONG}
    assert (told, errors) == ({*GOOD}, {InvalidRecordError})
    assert values(lake) == GOOD * times
    (report,) = lake.archive("orders")
    assert (report.records, report.unparsed) == (len(GOOD) * times, 0)
    assert lake.sql(
        "select n, s from orders where n is not null limit 2"
    ).read_all().to_pylist() == [
        {"n": 1, "s": "none"},
        {"n": 2, "s": "x"},
    ]


def test_many_wrong_records_are_refused_at_once(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.codec import enforced_columns

    looked: list[int] = []
    check = enforced_columns.wrong_values

    def wrong_values(values: pa.Array, config: TopicConfig) -> list[InvalidRecordError]:
        looked.append(len(values))
        return check(values, config)

    monkeypatch.setattr(enforced_columns, "wrong_values", wrong_values)
    lake.topics.create("orders", 1, SETTINGS)
    with lake.producer(linger_ms=1000) as producer:
        for n in range(2_000):
            producer.send("orders", WRONG[0] if n % 2 else GOOD[0])
        with pytest.raises(DeliveryError, match="1000 are surely not in the log"):
            producer.flush()
    assert len(values(lake)) == 1_000
    assert sum(looked) <= 3 * 2_000


def test_rows_of_a_frame(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, SETTINGS)
    lake.append("orders", [{"n": 1}, {"n": 2}])
    with pytest.raises(InvalidRecordError, match="n: missing or null, and it is NOT NULL"):
        lake.append("orders", [{"s": "x"}])
    assert values(lake) == [b'{"n":1}', b'{"n":2}']


def test_a_batch_of_columns_says_which_row(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, SETTINGS)
    with lake.producer() as producer, pytest.raises(InvalidRecordError) as refused:
        producer.send_batch("orders", pa.table({"value": pa.array([*GOOD, WRONG[0]], pa.binary())}))
    assert "record 3" in str(refused.value)


@pytest.mark.parametrize("entry_format", ["arrow", "kafka"])
def test_clients_of_kafka(lake: Lakelog, entry_format: str) -> None:
    from confluent_kafka import KafkaError, Producer

    lake.topics.create("orders", 1, {**SETTINGS, "lakelog.entry.format": entry_format})
    errors: list[KafkaError | None] = []
    with lake.gateway("127.0.0.1:0") as gateway:
        producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "linger.ms": 0})
        for value in (GOOD[0], WRONG[0], GOOD[2]):
            producer.produce(
                "orders", value, b"k", on_delivery=lambda error, _: errors.append(error)
            )
            producer.flush(30)
    assert [None if one is None else one.code() for one in errors] == [
        None,
        KafkaError.INVALID_RECORD,
        None,
    ]
    assert values(lake) == [GOOD[0], GOOD[2]]


def test_rows_of_a_task_of_spark(lake: Lakelog) -> None:
    topic = lake.topics.create("orders", 1, SETTINGS)
    rows = TaskRows(lake.topics.get, None, 0)

    def batch(*given: bytes | None) -> pa.RecordBatch:
        named = pa.array(["orders"] * len(given))
        return pa.RecordBatch.from_pydict({"value": pa.array(given, pa.binary()), "topic": named})

    ((call,),) = rows.calls([batch(*GOOD)])
    assert (call.topic, call.records.num_rows) == (topic, len(GOOD))
    with pytest.raises(InvalidRecordError, match="record 1 was not appended"):
        list(rows.calls([batch(GOOD[0], WRONG[0])]))


def test_values_of_another_format(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, {**SETTINGS, "lakelog.value.format": "messagepack"})
    with lake.producer() as producer:
        producer.send("orders", msgspec.msgpack.encode({"n": 1})).result()
        with pytest.raises(InvalidRecordError, match="not decoded as messagepack"):
            producer.send("orders", b"\xc1").result()
        with pytest.raises(InvalidRecordError, match="NOT NULL"):
            producer.send("orders", msgspec.msgpack.encode({})).result()


def test_it_is_switched_on_and_off_between_records(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, {"lakelog.value.columns": "n int"})
    with pytest.raises(InvalidConfigError, match=r"needs lakelog\.value\.columns"):
        lake.topics.create("plain", 1, {"lakelog.value.columns.enforce": "true"})
    with lake.producer() as producer:
        producer.send("orders", b"no JSON").result()
    lake.topics.alter("orders", SETTINGS)
    with lake.producer() as producer, pytest.raises(InvalidRecordError):
        producer.send("orders", b"no JSON").result()
    (report,) = lake.archive("orders")
    assert report.unparsed == 1  # what was there before

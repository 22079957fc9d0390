"""Sample records: the readings of some sensors, numbered, so that adding them again adds none."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from ..errors import InvalidArgumentError, TopicExistsError
from ..ingest.partitioner import partition_of_key
from ..ingest.producer import Producer
from ..lakelog import Lakelog
from ..read.topic_log import TopicLog
from ..values.offsets import LogOffsets, appended
from ..values.topic import Topic
from .status_rows import Appended

#: The topic of the notebooks.
READINGS = "readings"

#: How many a new log for trying things out has.
SAMPLE_READINGS = 360

PARTITIONS = 2
CONFIG = {
    "retention.ms": -1,  # they are from 2023: the default would drop them
    "local.retention.ms": 0,  # archived records leave Redis at once
}
SENSORS = ("attic", "cellar", "garage", "garden", "hall", "kitchen", "roof", "study")
FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
INTERVAL_MS = 1000

_CHUNK = 20_000


def add_readings(lakelog: Lakelog, topic: str, records: int) -> list[Appended]:
    """Makes sure that a topic holds the first `records` readings; creates it if needed.

    A reading's number determines all of it, even its partition, and a partition holds its readings
    in order, so its end says which are missing. A run that was cut off is finished by the next, and
    another run adds nothing. Runs at the same time may add some twice.

    Args:
        topic: its name. It should hold only these records: others count as readings, too.
        records: how many readings there should be, ≥ 0.

    Returns:
        What was appended, for each partition that got any.

    Raises:
        InvalidArgumentError: a negative number.
    """
    if records < 0:
        raise InvalidArgumentError(f"records={records}: there cannot be fewer than none")
    found = _topic(lakelog, topic)
    log = lakelog.log(found)
    partition_of = {name: partition_of_key(name.encode(), found.partitions) for name in SENSORS}
    added = []
    with lakelog.producer() as producer:
        for partition in range(found.partitions):
            own = [n for n, name in enumerate(SENSORS) if partition_of[name] == partition]
            numbers = [n for n in range(records) if n % len(SENSORS) in own]
            if appended := _append_missing(producer, log, partition, numbers):
                added.append(appended)
    return added


def _append_missing(
    producer: Producer, log: TopicLog, partition: int, numbers: Sequence[int]
) -> Appended | None:
    """What this run appended of a partition's readings; None if nothing was missing."""
    missing = numbers[_appended(log, partition, log.offsets()[partition]) :]
    offsets: list[int] = []
    for at in range(0, len(missing), _CHUNK):
        rows = _rows(missing[at : at + _CHUNK])
        sent = producer.send_batch(log.topic.name, rows, partition=partition)
        offsets += (sent[0].offset, sent[-1].offset + 1)
    if not offsets:
        return None
    return Appended(log.topic.partition(partition), offsets[0], offsets[-1], len(missing))


def _appended(log: TopicLog, partition: int, there: LogOffsets) -> int:
    """How many readings were ever appended, also those that are deleted since."""
    tp = log.topic.partition(partition)
    gaps = log.hot.offsets([tp], topic_id=log.topic.topic_id)[tp].gaps
    return appended(0, there.log_start, gaps) + appended(there.log_start, there.log_end, there.gaps)


def _topic(lakelog: Lakelog, name: str) -> Topic:
    if name not in {topic.name for topic in lakelog.topics.list()}:
        try:
            return lakelog.topics.create(name, PARTITIONS, CONFIG)
        except TopicExistsError:  # somebody else was faster
            pass
    return lakelog.topics.get(name)


def _rows(numbers: Sequence[int]) -> pa.Table:
    return pa.table(
        {
            "timestamp_ms": pa.array([FIRST_MS + n * INTERVAL_MS for n in numbers], pa.int64()),
            "key": pa.array([SENSORS[n % len(SENSORS)].encode() for n in numbers], pa.binary()),
            "value": pa.array([_value(n) for n in numbers], pa.binary()),
        }
    )


def _value(number: int) -> bytes:
    reading = {"n": number, "celsius": round(15 + number * 37 % 101 / 10, 1)}
    return json.dumps(reading, separators=(",", ":")).encode()

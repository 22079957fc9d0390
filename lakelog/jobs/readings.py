"""Sample records: the readings of some sensors, numbered, so that adding them again adds none.

Two runs at once add none twice either. The producer id of each piece says where in its partition
it begins, and its numbers count from 0. So of two pieces that begin at one offset Redis takes the
second for the first sent again, if they are the same, and refuses it if they are not; then the run
looks again how many readings there are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pyarrow as pa

from ..base.back_off import ASK_AGAIN, Tries
from ..base.failpoints import failpoint
from ..codec import ProducedBatch, encode, resolve_compression
from ..codec.encryption.of_topic import sealed
from ..errors import (
    InvalidArgumentError,
    LakelogError,
    OutOfOrderSequenceError,
    RecoveryNeededError,
    TopicExistsError,
)
from ..ingest.given_records import as_columns
from ..ingest.partitioner import partition_of_key
from ..ingest.producer_config import ProducerConfig
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

#: For how long a Redis that is away or full is asked again, as producers do.
_BACK_OFF = ASK_AGAIN.within(120.0)


def add_readings(lakelog: Lakelog, topic: str, records: int) -> list[Appended]:
    """Makes sure that a topic holds the first `records` readings; creates it if needed.

    A reading's number determines all of it, even its partition, and a partition holds its readings
    in order, so its end says which are missing. A run that was cut off is finished by the next,
    another run adds nothing, and runs at the same time share the work.

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
    for partition in range(found.partitions):
        own = [n for n, name in enumerate(SENSORS) if partition_of[name] == partition]
        numbers = [n for n in range(records) if n % len(SENSORS) in own]
        if appended := _append_missing(log, partition, numbers):
            added.append(appended)
    return added


def _append_missing(log: TopicLog, partition: int, numbers: Sequence[int]) -> Appended | None:
    """What this run appended of a partition's readings; None if nothing was missing."""
    tries, redis = Tries("adding readings", _BACK_OFF), log.redis
    assert redis is not None  # it was connected to one
    start = end = told_end = count = 0
    while True:
        try:
            there = log.offsets()[partition]
            known = _appended(log, partition, there)
            missing = numbers[known : known + _CHUNK]
            if not missing:
                return (
                    Appended(log.topic.partition(partition), start, end, count) if count else None
                )
            failpoint("jobs.before_readings")
            batch = _batch(log.topic, partition, there.log_end, missing)
            result = redis.append(log.topic.partition(partition), log.topic.topic_id, batch)
        except OutOfOrderSequenceError:
            continue  # another run appended another piece here
        except RecoveryNeededError:
            log.recover(partition, told_end)
            continue
        except LakelogError as error:
            if not error.retriable:
                raise
            tries.pause(error)  # what may have been written is seen by the next look
            continue
        tries.renew()
        told_end = result.base_offset + len(missing)
        if not result.duplicate:
            start = start if count else result.base_offset
            end = told_end
            count += len(missing)


def _appended(log: TopicLog, partition: int, there: LogOffsets) -> int:
    """How many readings were ever appended, also those that are deleted since."""
    tp = log.topic.partition(partition)
    gaps = log.hot.offsets([tp], topic_id=log.topic.topic_id)[tp].gaps
    return appended(0, there.log_start, gaps) + appended(there.log_start, there.log_end, there.gaps)


def _batch(topic: Topic, partition: int, log_end: int, numbers: Sequence[int]) -> ProducedBatch:
    config = topic.config
    table, _ = as_columns(_rows(numbers), FIRST_MS)
    entries = encode(
        sealed(topic, table.combine_chunks().to_batches()[0]),
        config["lakelog.entry.format"],
        resolve_compression(config["compression.type"], ProducerConfig().compression_type),
        max_entry_bytes=config["max.message.bytes"],
        max_decoded_bytes=config["lakelog.max.decoded.bytes"],
        flatten=config["lakelog.fields.flatten"],
    )
    place = f"readings of {topic.topic_id}-{partition} from {log_end}"
    digest = hashlib.sha256(place.encode()).digest()
    producer_id = int.from_bytes(digest[:8], "big") >> 2  # 62 bits, as those of producers
    return ProducedBatch(entries, producer_id, 0, 0, len(numbers) - 1)


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

"""A producer: what it is about to send, then what it was told.

| line | fields |
|---|---|
| ``session`` | number, whether what it is told is durable |
| ``intent`` | topic, [[sequence, key], …]; before any of them is handed over |
| ``ack`` | sequence, partition, offset |
| ``refused`` | [sequence, …], why: surely not written |
| ``unknown`` | [sequence, …], why |
"""

from __future__ import annotations

import time

from lakelog.errors import (
    DeliveryError,
    LakelogError,
    NotEnoughReplicasAfterAppendError,
    UnknownTopicIdError,
)
from lakelog.ingest.delivery import SendResult
from lakelog.ingest.producer import Producer

from .payload import PAYLOAD_HEADER
from .scenario import TOPICS
from .worker import Process

#: Of one value: the payload's name, a bar, and so many bytes at most.
FILLER_BYTES = 120


KEYS = 25
TOMBSTONES = 0.05

#: The pause after a burst, at most: two cores must also run everybody else.
PAUSE_S = 0.12

DELIVERY_TIMEOUT_MS = 12_000


def produce(process: Process) -> None:
    log = process.connect()
    acks = process.place.acks[process.name]
    process.journal.write("session", process.session, acks in process.place.durable)
    sequence = 0
    producer = log.producer(
        acks=acks,
        max_block_ms=5_000,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        linger_ms=process.draws.choice([0, 5, 20]),
    )
    while not process.stop.is_set():
        topic = process.draws.choice(list(TOPICS))
        count = process.draws.choice([1, 1, 2, 5, 12, 30])
        keys = [key_of(process, topic) for _ in range(count)]
        sequences = list(range(sequence, sequence + count))
        sequence += count
        records = list(zip(sequences, keys, strict=True))
        process.journal.write("intent", topic, records)
        if process.draws.random() < 0.2:
            _send_batch(process, producer, topic, records)
        else:
            _send_each(process, producer, topic, records)
        time.sleep(process.draws.uniform(0, PAUSE_S))
    try:
        producer.close(DELIVERY_TIMEOUT_MS)
    except LakelogError as error:  # each record's own answer is in the journal
        process.journal.write("closed", str(error)[:300])
    log.close()


def key_of(process: Process, topic: str) -> str | None:
    if topic == "compacted" or process.draws.random() < 0.5:
        return f"k{process.draws.randrange(KEYS)}"
    return None


def value_of(process: Process, topic: str, payload: str) -> str | None:
    if topic == "compacted" and process.draws.random() < TOMBSTONES:
        return None
    return f"{payload}|{'x' * process.draws.randrange(FILLER_BYTES)}"


def _send_each(
    process: Process, producer: Producer, topic: str, records: list[tuple[int, str | None]]
) -> None:
    partition = None
    if process.draws.random() < 0.3:
        partition = process.draws.randrange(TOPICS[topic].partitions)
    for position, (sequence, key) in enumerate(records):
        payload = f"{process.name}.{process.session}.{sequence}"
        value = value_of(process, topic, payload)
        headers = {PAYLOAD_HEADER: payload} if value is None else {}
        try:
            result = producer.send(topic, value, key=key, headers=headers, partition=partition)
        except LakelogError as error:  # not taken, nor those after it, so that order stays
            _tell(process, [left for left, _ in records[position:]], error, may_be_there=False)
            return
        result.add_done_callback(lambda done, number=sequence: _answered(process, number, done))


def _send_batch(
    process: Process, producer: Producer, topic: str, records: list[tuple[int, str | None]]
) -> None:
    rows = []
    for sequence, key in records:
        payload = f"{process.name}.{process.session}.{sequence}"
        rows.append((key, f"{payload}|"))
    try:
        answer = producer.send_batch(topic, rows)
    except LakelogError as error:
        refused = []
        if error.batch is not None:
            refused = [records[row][0] for row in error.batch.not_written_rows.to_pylist()]
        if refused and not isinstance(error, UnknownTopicIdError):
            process.journal.write("refused", refused, str(error)[:200])
        return
    for (sequence, _), told in zip(records, answer, strict=True):
        process.journal.write("ack", sequence, told.partition, told.offset)


def _answered(process: Process, sequence: int, result: SendResult) -> None:
    error = result.exception(0)
    if error is None:
        told = result.result(0)
        process.journal.write("ack", sequence, told.partition, told.offset)
    else:
        # A record of a topic that was dropped may have been written to it before.
        unknown = isinstance(error, NotEnoughReplicasAfterAppendError | UnknownTopicIdError) or (
            isinstance(error, DeliveryError) and error.unknown > 0
        )
        _tell(process, [sequence], error, may_be_there=unknown)


def _tell(process: Process, sequences: list[int], error: Exception, *, may_be_there: bool) -> None:
    kind = "unknown" if may_be_there else "refused"
    process.journal.write(kind, sequences, f"{type(error).__name__}: {error}"[:200])

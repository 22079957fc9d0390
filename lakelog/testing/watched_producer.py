"""Real producers in the machine: each append that they make is held against the model.

A `Producer` decides by itself what goes into a call, what it sends again and under which number.
The model hears of each of its appends as Redis does; in the end each record must have been written
once, in the order in which it was sent, where its result says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..codec import Entry
from ..errors import DeliveryError, HotTierUnavailableError
from ..hot import Acks, AppendCall, AppendResult, HotLog
from ..ingest.producer import Producer, ProducerConfig
from ..record import RecordMetadata, TopicPartition
from .model import ModelLog, Row, require

#: Such batches and pauses that many calls are in flight, and none waits for long.
SETTINGS = {"linger_ms": 0, "batch_size": 300, "retry_backoff_ms": 1, "retry_backoff_max_ms": 20}

Append = Callable[
    [Sequence[tuple[AppendCall, "tuple[Row, ...]"]]], "Sequence[AppendResult | Exception]"
]
"""Has calls with these rows appended, and holds the answers against the model."""

Recover = Callable[[TopicPartition, int], object]


class WatchedProducer:
    """A producer of one topic, and what it was given to send.

    Args:
        append: called in the producer's thread, while `write` waits.
    """

    def __init__(self, hot: HotLog, append: Append, recover: Recover) -> None:
        self._watched = _Watched(hot, append)
        config = ProducerConfig.of(**SETTINGS)
        self._producer = Producer(self._watched, hot.topics(), recover, config)  # type: ignore[arg-type]  # in all but appends it is one

    def write(
        self, model: ModelLog, rows: Sequence[Row], run_id: str, lost: Sequence[str] = ()
    ) -> None:
        """Sends rows to the model's partition and waits for their answers.

        Args:
            run_id: of the server.
            lost: what becomes of the next round trips: the ``request`` or the ``reply`` is lost.

        Raises:
            Difference: an append was not answered as the model answers it, or a record is not
                there once, in its place.
        """
        topic, partition = model.topic_partition
        self._watched.begin(rows, run_id, lost)
        known = len(model.records)
        results = [
            self._producer.send(
                topic,
                value,
                key=key,
                headers=headers,
                timestamp_ms=timestamp_ms,
                partition=partition,
            )
            for timestamp_ms, key, value, headers in rows
        ]
        failures = [error for result in results if (error := result.exception()) is not None]
        self._watched.end()
        expected = [
            RecordMetadata(topic, partition, record.offset, record.timestamp_ms)
            for record in model.records[known:]
        ]
        told = [result.result() for result in results if result.exception() is None]
        if not failures:
            require(told == expected, f"the producer was told {told}, and written was {expected}")
            return
        # An answer was lost, and then what Redis knows of the producer.
        require(lost, f"the producer could not tell what became of its records: {failures[0]}")
        for error in failures:
            require(isinstance(error, DeliveryError) and error.unknown, f"refused: {error!r}")
        written = {one.offset: one for one in expected}
        require(
            len(expected) <= len(rows) and all(written.get(one.offset) == one for one in told),
            f"of {len(rows)} records the producer was told {told}, and written was {expected}",
        )

    def close(self) -> None:
        self._producer.close()


class _Watched:
    """A hot tier whose appends somebody watches, and of which round trips may be lost."""

    def __init__(self, hot: HotLog, append: Append) -> None:
        self._hot = hot
        self._append = append
        self._rows: deque[Row] = deque()  # those that no call has had yet
        self._calls: dict[int, tuple[tuple[Entry, ...], tuple[Row, ...]]] = {}  # by identity
        self._run_id = ""
        self._lost: deque[str] = deque()
        self._failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hot, name)

    def begin(self, rows: Sequence[Row], run_id: str, lost: Sequence[str]) -> None:
        self._run_id = run_id
        self._rows, self._lost = deque(rows), deque(lost)
        self._calls.clear()
        self._failure = None

    def end(self) -> None:
        """Raises what the watching found: in the producer's thread nobody would hear of it."""
        if self._failure is not None:
            raise self._failure

    def append_all(
        self, calls: Sequence[AppendCall], acks: Acks
    ) -> Sequence[AppendResult | Exception]:
        lost = self._lost.popleft() if self._lost else ""
        try:
            watched = [(call, self._rows_of(call)) for call in calls]
            answers = [] if lost == "request" else self._append(watched)
        except Exception as error:
            self._failure = self._failure or error
            return [error] * len(calls)
        if lost:
            unanswered = HotTierUnavailableError("lost", sent=True, run_id=self._run_id)
            return [unanswered] * len(calls)
        return answers

    def _rows_of(self, call: AppendCall) -> tuple[Row, ...]:
        """What a call brings: of one that was not seen before, the next rows."""
        batch = call.batch
        if id(batch.entries) not in self._calls:
            count, left = batch.record_count, len(self._rows)
            require(count <= left, f"a call with {count} new records, of which {left} are left")
            rows = tuple(self._rows.popleft() for _ in range(count))
            self._calls[id(batch.entries)] = batch.entries, rows
        return self._calls[id(batch.entries)][1]

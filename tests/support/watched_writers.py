"""Real writers in the machine: each of their appends is compared with the model.

A `Producer`, or a task of Spark's sink, decides by itself what goes into a call, and what it
resends under which number. The model gets each of its appends as Redis does. In the end each record
must be there once, in the given order, where the answer says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from lakelog.base.back_off import BackOff
from lakelog.codec import Entry
from lakelog.errors import (
    DeliveryError,
    HotTierUnavailableError,
    RepeatDiffersError,
    UnknownProducerError,
)
from lakelog.hot import Acks, AppendCall, AppendResult, HotLog
from lakelog.ingest.producer import Producer, ProducerConfig
from lakelog.spark.sink_append import TaskAppend, TaskIdentity
from lakelog.spark.sink_rows import Rows
from lakelog.testing.model import ModelLog, Row, require
from lakelog.values.record import NO_TIMESTAMP_MS, RecordMetadata, produced_batch
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

Answers = Sequence[AppendResult | Exception]


class Watch(Struct, frozen=True):
    """What the machine gives a writer.

    Args:
        append: appends calls with these rows, and compares the answers with the model; may be
            called in another thread, while `Writer.write` waits.
        recover: recovers a partition, for offsets at or above the given one.
    """

    topic: Topic
    hot: HotLog
    append: Callable[[Sequence[tuple[AppendCall, Sequence[Row]]]], Answers]
    recover: Callable[[TopicPartition, int], None]


class Writer(Protocol):
    """A writer to the watched topic."""

    def write(
        self, model: ModelLog, rows: Sequence[Row], run_id: str, lost: Sequence[str] = ()
    ) -> None:
        """Writes rows to the model's partition, until all have their answer.

        Args:
            run_id: the server's run.
            lost: what becomes of the next round trips: the ``request`` or the ``reply`` is lost.

        Raises:
            Difference: an append got another answer than the model's, or a record is not there
                exactly once, in its place.
        """
        ...

    def close(self) -> None: ...


class WatchedProducer:
    """A `Producer` with small batches and short pauses, so that many calls are in flight."""

    def __init__(self, watch: Watch) -> None:
        self._watched = _Watched(watch)
        config = ProducerConfig(
            linger_ms=0, batch_size=300, retry_backoff_ms=1, retry_backoff_max_ms=20
        )
        hot: Any = self._watched  # it is a HotLog in all but appends
        self._producer = Producer(hot, watch.hot.topics(), watch.recover, config)
        self._left: deque[Row] = deque()  # rows that no call has had yet
        self._calls: dict[int, tuple[tuple[Entry, ...], list[Row]]] = {}  # by identity

    def write(
        self, model: ModelLog, rows: Sequence[Row], run_id: str, lost: Sequence[str] = ()
    ) -> None:
        """See `Writer.write`."""
        topic, partition = model.topic_partition
        known = len(model.records)
        self._left = deque(rows)
        self._calls.clear()
        with self._watched.losing(lost, run_id, self._rows_of):
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
        written = [
            RecordMetadata(topic, partition, record.offset, record.timestamp_ms)
            for record in model.records[known:]
        ]
        told = [result.result() for result in results if result.exception() is None]
        if not failures:
            require(told == written, f"the producer was told {told}, and written was {written}")
            return
        # An answer was lost, and later what Redis knew of the producer.
        require(lost, f"the producer could not tell what became of its records: {failures[0]}")
        for error in failures:
            require(isinstance(error, DeliveryError) and error.unknown, f"refused: {error!r}")
        require(
            len(written) <= len(rows) and all(one in written for one in told),
            f"of {len(rows)} records the producer was told {told}, and written was {written}",
        )

    def close(self) -> None:
        self._producer.close()

    def _rows_of(self, call: AppendCall) -> Sequence[Row]:
        """The rows of a call; for a new call, the next rows."""
        entries = call.batch.entries
        if id(entries) not in self._calls:
            count, left = call.batch.record_count, len(self._left)
            require(count <= left, f"a call with {count} new records, of which {left} are left")
            self._calls[id(entries)] = entries, [self._left.popleft() for _ in range(count)]
        return self._calls[id(entries)][1]


class WatchedSink:
    """The tasks of a streaming query, one micro-batch for each write."""

    ATTEMPTS = 4  # as Spark's own
    ROWS = 5  # of a call

    def __init__(self, watch: Watch, query: str, epoch: int = 0) -> None:
        self._watch = watch
        self._watched = _Watched(watch)
        self._query = query
        self._epoch = epoch

    def write(
        self, model: ModelLog, rows: Sequence[Row], run_id: str, lost: Sequence[str] = ()
    ) -> None:
        """See `Writer.write`. At the end the task is repeated, as after a lost commit message."""
        # The sink stamps a record without a timestamp with the time, which the model cannot know.
        timed = [(max(row[0], NO_TIMESTAMP_MS + 1), *row[1:]) for row in rows]
        known = len(model.records)
        with self._watched.losing(lost, run_id, lambda call: _slice(timed, call)):
            self._attempts(model.topic_partition, timed)
            written = len(model.records) - known
            require(written == len(rows), f"of {len(rows)} rows of a task {written} were written")
            self._attempt(model.topic_partition, timed)
        again = len(model.records) - known
        require(again == len(rows), f"of {len(rows)} rows a repeat of the task made {again}")
        self._epoch += 1

    def begin(self, model: ModelLog, rows: Sequence[Row], run_id: str, calls: int) -> bool:
        """An attempt that dies after so many calls, also those that were there before it.

        Returns:
            False: it was refused, since how far the task had come is not known any more.

        Raises:
            Difference: as for `Writer.write`.
        """
        part = rows[: calls * self.ROWS]
        with self._watched.losing((), run_id, lambda call: _slice(rows, call)):
            try:
                self._attempts(model.topic_partition, part)
            except RepeatDiffersError as error:
                require(error.is_cut, f"a task that repeats its rows was refused: {error}")
                return False
        return True

    def close(self) -> None:
        """Nothing is held between tasks."""

    def _attempts(self, topic_partition: TopicPartition, rows: Sequence[Row]) -> None:
        for attempt in range(self.ATTEMPTS):
            try:
                self._attempt(topic_partition, rows)
                return
            except UnknownProducerError:
                if attempt == self.ATTEMPTS - 1:
                    raise

    def _attempt(self, topic_partition: TopicPartition, rows: Sequence[Row]) -> None:
        hot: Any = self._watched
        append = TaskAppend(
            hot,
            TaskIdentity(self._query, topic_partition.partition, self._epoch),
            Acks(),
            recover=lambda _, tp, at_least: self._watch.recover(tp, at_least),
            repair=self._watch.hot.topics().repair,
            back_off=BackOff(0.001, 0.02).within(30.0),
        )
        calls = [
            Rows(self._watch.topic, topic_partition.partition, produced_batch(part))
            for part in _parts(rows, self.ROWS)
        ]
        append.send(append.number(calls))
        append.finish()


def _slice(rows: Sequence[Row], call: AppendCall) -> Sequence[Row]:
    return rows[call.batch.first_sequence : call.batch.last_sequence + 1]


def _parts(rows: Sequence[Row], size: int) -> Iterable[Sequence[Row]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


class _Watched:
    """A hot tier whose appends are watched, and whose round trips may be lost."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lost: deque[str] = deque()
        self._run_id = ""
        self._rows_of: Callable[[AppendCall], Sequence[Row]]
        self._failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watch.hot, name)

    def losing(
        self, lost: Sequence[str], run_id: str, rows_of: Callable[[AppendCall], Sequence[Row]]
    ) -> _Watched:
        """For a ``with`` block, which raises any difference that was found."""
        self._lost, self._run_id, self._rows_of, self._failure = deque(lost), run_id, rows_of, None
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        if self._failure is not None:  # it was raised in the writer's own thread
            raise self._failure

    def append_all(self, calls: Sequence[AppendCall], acks: Acks) -> Answers:
        lost = self._lost.popleft() if self._lost else ""
        answers: Answers = ()
        try:
            if lost != "request":
                answers = self._watch.append([(call, self._rows_of(call)) for call in calls])
        except Exception as error:
            self._failure = self._failure or error
            return [error] * len(calls)
        if lost:
            unanswered = HotTierUnavailableError("lost", sent=True, run_id=self._run_id)
            return [unanswered] * len(calls)
        return answers

"""A member of a consumer group: joins, reads, commits, leaves, and joins again.

| line | fields |
|---|---|
| ``joins`` | who: another one each time |
| ``handled`` | who, generation, topic id, partition, [offset, …], [payload, …] |
| ``committed`` | who, generation, when it was asked for, [[topic id, partition, offset], …] |
| ``error`` | who, what went wrong; it goes on |
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import count

from lakelog.errors import LakelogError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.settings import GroupSettings
from lakelog.lakelog import Lakelog
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.subscription import SeenTopics
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

from .payload import payload_of
from .scenario import TOPICS
from .worker import Process

GROUP = "chaos"
POLL_MS = 200

#: Shorter than many of the times for which a member is stopped.
SESSION_MS = 2_000

#: How long the members may take to come to the end of all topics after all is well.
DRAIN_S = 35.0

#: What a round's members agree on; of the last, what all of them have.
STRATEGIES = (
    ("range",),
    ("roundrobin",),
    ("sticky",),
    ("cooperative-sticky",),
    ("range", "cooperative-sticky"),
)


def take_part(process: Process) -> None:
    log = process.connect()
    number = count()
    while not process.stop.is_set():
        with _Member(process, log, f"{process.name}.{process.session}.{next(number)}") as member:
            for _ in member.polls():
                if process.stop.is_set():
                    break
    with _Member(process, log, f"{process.name}.{process.session}.last") as member:
        member.drain()
    log.close()


class _Member:
    def __init__(self, process: Process, log: Lakelog, who: str) -> None:
        self._process = process
        self._who = who
        self._draws = process.draws
        process.journal.write("joins", who)
        strategies = random.Random(process.place.seed).choice(STRATEGIES)
        settings = GroupSettings(min_session_timeout_ms=1, initial_rebalance_delay_ms=100)
        self._consumer = Consumer(
            log.log,
            ConsumerConfig(
                group_id=GROUP,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=300,
                max_poll_interval_ms=10_000,
                metadata_max_age_ms=1_000,
                partition_assignment_strategy=strategies,
            ),
            SeenTopics(log.topics.list, log.topics.version),
            GroupCoordinator(log.hot.connections, settings=settings),
        )
        self._consumer.subscribe(TOPICS)

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._consumer.close()
        except LakelogError as error:
            self._note(error)

    def polls(self) -> Iterator[None]:
        """Reads for a while, now and then with a commit."""
        for _ in range(self._draws.randrange(10, 300)):
            self.poll()
            if self._draws.random() < 0.4:
                self.commit(waits=self._draws.random() < 0.7)
            yield

    def poll(self) -> None:
        limit = self._draws.choice([1, 20, 500])
        try:
            polled = self._consumer.poll(POLL_MS, limit)
        except LakelogError as error:
            self._note(error)
            time.sleep(0.1)
            return
        generation_id = self._consumer.group_metadata().generation_id
        ids = self._topic_ids()
        for tp, records in polled.items():
            self._process.journal.write(
                "handled",
                self._who,
                generation_id,
                ids[tp],
                tp.partition,
                [record.offset for record in records],
                [payload_of(record.value, record.headers) for record in records],
            )

    def commit(self, *, waits: bool) -> None:
        """All that was handled."""
        generation_id = self._consumer.group_metadata().generation_id
        asked_s = round(time.monotonic(), 4)
        ids = self._topic_ids()

        def note(offsets: dict[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
            if error is not None:
                self._note(error)
                return
            places = [[ids[tp], tp.partition, one.offset] for tp, one in offsets.items()]
            self._process.journal.write("committed", self._who, generation_id, asked_s, places)

        try:
            offsets = {
                tp: OffsetAndMetadata(position)
                for tp in ids
                if (position := self._consumer.position(tp)) is not None
            }
            if not waits:
                self._consumer.commit_async(offsets, note)
                return
            self._consumer.commit(offsets)
        except LakelogError as error:
            self._note(error)
        else:
            note(offsets, None)

    def drain(self) -> None:
        """Until what it has is read, and committed; the others get it when it leaves."""
        deadline_s = time.monotonic() + DRAIN_S
        calm_s = None
        while time.monotonic() < deadline_s:
            self.poll()
            self.commit(waits=True)
            if not self._is_at_end():
                calm_s = None
            elif calm_s is None:
                calm_s = time.monotonic()
            elif time.monotonic() - calm_s > 1.0:
                return

    def _is_at_end(self) -> bool:
        try:
            mine = self._consumer.assignment()
            ends = self._consumer.end_offsets(mine)
            return all(self._consumer.committed(tp) == ends[tp] for tp in mine)
        except LakelogError:
            return False

    def _topic_ids(self) -> dict[TopicPartition, str]:
        """Of the lives of topics that it reads, which nobody else can tell."""
        return {
            cursor.topic_partition: str(cursor.log.topic.topic_id)
            for cursor in self._consumer._reading
        }

    def _note(self, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}"[:300]
        self._process.journal.write("error", self._who, said)

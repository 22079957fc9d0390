"""Recoveries of partitions beside a producer's sender, which has others to serve."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from ..engines.threads import Workers, settle
from ..values.topic_partition import TopicPartition

#: Topics that are at it at a time; others wait, as they may when as many stores do not answer.
TOPICS_AT_ONCE = 8


class Recoveries:
    """Recovers partitions, those of a topic one after the other.

    They ask the topic's table and take the server's lock: at once they would stand in each other's
    way. Topics do not wait for one another, since a table may lie where nobody answers.

    Args:
        recover: see `Producer`.
    """

    def __init__(self, recover: Callable[[TopicPartition, int], object]) -> None:
        self._recover = recover
        self._workers = Workers("lakelog-recovery")
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Callable[[], None]]] = {}  # by topic
        self._due: deque[str] = deque()  # topics of these that no thread is at
        self._threads = 0

    def ask(self, topic_partition: TopicPartition, at_least: int) -> Future[object]:
        """Begin with it as soon as the topic's others are done; its outcome comes later."""
        answer: Future[object] = Future()
        recover = partial(self._recover, topic_partition, at_least)
        topic = topic_partition.topic
        with self._lock:
            if topic not in self._waiting:
                self._waiting[topic] = deque()
                self._due.append(topic)
            self._waiting[topic].append(partial(settle, answer, recover))
            if self._threads == TOPICS_AT_ONCE or not self._due:
                return answer
            self._threads += 1
        self._workers.run(self._work)
        return answer

    def end(self) -> None:
        """End the threads; those that are in a recovery, after it."""
        self._workers.end()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._due:
                    self._threads -= 1
                    return
                topic = self._due.popleft()
                task = self._waiting[topic].popleft()
            task()
            with self._lock:
                if self._waiting[topic]:
                    self._due.append(topic)
                else:
                    del self._waiting[topic]

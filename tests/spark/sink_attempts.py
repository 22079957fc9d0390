"""Attempts of one task to append its rows to a topic, and what is in the log then."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog import Lakelog
from lakelog.base.back_off import ASK_AGAIN
from lakelog.hot import Acks, AppendCall
from lakelog.spark.sink import append_rows
from lakelog.spark.sink_append import TaskAppend, TaskIdentity
from lakelog.spark.sink_rows import TaskRows
from lakelog.values.record import to_records
from lakelog.values.topic import Topic

PARTITIONS = 2
COUNT = 220
TASK = TaskIdentity("query", 3, epoch=5)


class Stopped(Exception):
    """The attempt ends here, as if its process did."""


class Attempts:
    """Attempts to append to one topic, each with what it does not remember of the others."""

    def __init__(self, url: str, cold: Path | str | None = None, **settings: Any) -> None:
        self.lakelog = Lakelog.connect(url, cold, engine="inline")
        self.has_cold = cold is not None
        self.settings = {"retention.ms": -1, "remote.storage.enable": self.has_cold, **settings}
        self.create()

    def create(self) -> None:
        self.topic: Topic = self.lakelog.topics.create("orders", PARTITIONS, self.settings)

    def append(
        self,
        rows: pa.Table,
        identity: TaskIdentity = TASK,
        *,
        arriving: int = 1_000,
        stop_after: int | None = None,
        patience_s: float = 0.2,
        meanwhile: Mapping[int, Callable[[], object]] | None = None,
    ) -> int:
        """One attempt; ``stop_after`` so many calls it fails.

        ``meanwhile``: by their places in a round of calls, what happens once one is sent.
        """
        append = StoppingAppend(
            self.lakelog.hot,
            identity,
            Acks(),
            recover=lambda topic, tp, at_least: self.lakelog.log(topic).recover(
                tp.partition, at_least
            ),
            repair=self.lakelog.topics.repair,
            back_off=ASK_AGAIN.within(patience_s),
        )
        append.left, append.meanwhile = stop_after, meanwhile
        task = TaskRows(lambda name: self.topic, self.topic, 0)
        append_rows(append, task, rows.to_batches(arriving))
        return append.finish()

    def begin(self, table: pa.Table, calls: int) -> None:
        """An attempt that is cut after so many calls."""
        with suppress(Stopped):
            self.append(table, stop_after=calls)
            raise AssertionError(f"the attempt ended before {calls} calls")

    def values(self) -> list[list[bytes]]:
        """Of each partition, in order; of Redis alone where no cold root was given."""
        partitions = self.topic.topic_partitions()
        if self.has_cold:
            log = self.lakelog.log(self.topic)
            return [[r.value for r in log.read(tp.partition).records()] for tp in partitions]
        hot = self.lakelog.hot
        return [
            [r.value for step in hot.read(tp, 0) for r in to_records(tp, step.records)]
            for tp in partitions
        ]


class StoppingAppend(TaskAppend):
    left: int | None = None
    meanwhile: Mapping[int, Callable[[], object]] | None = None

    def send(self, calls: Any) -> None:
        if self.meanwhile is not None:
            for number, call in enumerate(calls):
                super().send([call])
                self.meanwhile.get(number, lambda: None)()
            return
        if self.left is None:
            super().send(calls)
            return
        some: list[AppendCall] = list(calls)[: self.left]
        super().send(some)
        self.left -= len(some)
        if not self.left:
            raise Stopped


class LostAttempts(Attempts):
    """Attempts to append to an archived topic, whose Redis is lost between them."""

    def archive(self, **until: Any) -> None:
        self.lakelog.archive("orders", **until)

    def lose(self) -> None:
        """Redis is emptied, and the topic made again out of its table."""
        servers = self.lakelog.hot._servers
        for server in servers.all():
            server.call(("FLUSHALL",))
        self.lakelog.restore("orders")

    def compare(self, table: pa.Table, times: int = 1) -> None:
        values = self.values()
        assert flat(values) == sorted(times * expected(table))
        assert times > 1 or is_in_order(values)


def rows(count: int = COUNT, *, seed: int = 1, width: int = 100_000) -> pa.Table:
    """Rows of 50 KB on average, so that a task makes a dozen calls."""
    chance = random.Random(seed)
    return pa.table(
        {
            "key": pa.array([b"%d" % chance.randrange(99) for _ in range(count)], pa.binary()),
            "value": pa.array(
                [b"%d/" % n + chance.randbytes(chance.randrange(width)) for n in range(count)]
            ),
        }
    )


def expected(table: pa.Table) -> list[bytes]:
    return sorted(table["value"].to_pylist())


def flat(values: list[list[bytes]]) -> list[bytes]:
    return sorted(value for of_one in values for value in of_one)


def is_in_order(values: list[list[bytes]]) -> bool:
    return all(
        [int(v.split(b"/")[0]) for v in of_one] == sorted(int(v.split(b"/")[0]) for v in of_one)
        for of_one in values
    )

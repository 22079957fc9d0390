"""A sink: tasks of Spark's sink, one after the other, each tried again until it is done.

After a kill it goes on with the last task of its journal, as a query does by its checkpoint.

| line | fields |
|---|---|
| ``task`` | topic, sequence of the first row, the rows' keys; before any of them is handed over |
| ``confirmed`` | when it was asked for, first sequence, rows: those rows are in the log |
| ``finished`` | sequence of the first row, rows |
| ``given up`` | likewise: how many of them are in the log is not known any more |
| ``error`` | why an attempt ended |
"""

from __future__ import annotations

import random
import time

from lakelog.base.back_off import BackOff
from lakelog.errors import LakelogError, ProducerFencedError, RepeatDiffersError
from lakelog.hot import Acks
from lakelog.lakelog import Lakelog
from lakelog.spark.sink_append import TaskAppend, TaskIdentity
from lakelog.spark.sink_rows import Rows
from lakelog.values.record import NO_TIMESTAMP_MS, produced_batch

from .journal import read_journal
from .producing import FILLER_BYTES, KEYS
from .worker import Process

#: A topic that nothing is deleted from.
TOPIC = "plain"

#: How long an attempt waits for Redis; Spark then starts another.
PATIENCE = BackOff(0.05, 0.5).within(5.0)

#: Until an attempt follows one that failed.
RETRY_S = 0.3

#: Between two calls of a task, and between two tasks, at most.
PAUSE_S = 0.1


def sink(process: Process) -> None:
    log = process.connect()
    process.journal.write("begins")
    number, first, is_over = _last_task(process)
    while not process.stop.is_set():
        if is_over:
            first += len(_task(process, number))
            number += 1
        rows = _task(process, number)
        process.journal.write("task", TOPIC, first, [key for key, _ in rows])
        is_over = False
        try:
            _attempt(process, log, number, first, rows)
            process.journal.write("finished", first, len(rows))
            is_over = True
        except RepeatDiffersError as error:
            if not error.is_cut:
                raise
            process.journal.write("given up", first, len(rows))
            is_over = True
        except ProducerFencedError:  # nobody else has its name
            raise
        except LakelogError as error:
            process.journal.write("error", f"{type(error).__name__}: {error}"[:300])
            process.stop.wait(RETRY_S)
        process.stop.wait(process.draws.uniform(0, PAUSE_S))
    log.close()


def _attempt(
    process: Process, log: Lakelog, number: int, first: int, rows: list[tuple[str | None, int]]
) -> None:
    topic = log.topics.get(TOPIC)
    append = TaskAppend(
        log.hot,
        TaskIdentity(process.name, 0, number),
        Acks(),
        recover=lambda topic, tp, at_least: log.log(topic).recover(tp.partition, at_least),
        repair=log.topics.repair,
        back_off=PATIENCE,
    )
    cut = random.Random(f"{process.place.seed} {process.name} {number} cut")
    at = 0
    while at < len(rows) and not process.stop.is_set():
        count = min(cut.choice([1, 3, 10, 40]), len(rows) - at)
        partition = cut.randrange(topic.partitions)
        batch = produced_batch(
            [
                (
                    NO_TIMESTAMP_MS,
                    None if key is None else key.encode(),
                    f"{process.name}.0.{first + at + n}|{'x' * filler}".encode(),
                    (),
                )
                for n, (key, filler) in enumerate(rows[at : at + count])
            ]
        )
        asked_s = time.monotonic()
        append.send(append.number([Rows(topic, partition, batch)]))
        process.journal.write("confirmed", asked_s, first + at, count)
        at += count
        time.sleep(process.draws.uniform(0, PAUSE_S))
    if at < len(rows):
        raise LakelogError("it was told to end amid a task")
    append.finish()


def _task(process: Process, number: int) -> list[tuple[str | None, int]]:
    """The rows of a task, the same each time: keys, and how many bytes of filler."""
    draws = random.Random(f"{process.place.seed} {process.name} {number}")
    return [
        (
            f"k{draws.randrange(KEYS)}" if draws.random() < 0.5 else None,
            draws.randrange(FILLER_BYTES),
        )
        for _ in range(draws.choice([1, 20, 100, 300]))
    ]


def _last_task(process: Process) -> tuple[int, int, bool]:
    """Number and first sequence of the task that was begun last, and whether it is over."""
    number, first, is_over = 0, 0, False
    for kind, _, *fields in read_journal(process.place.journal_file(process.name)):
        if kind == "task" and fields[1] != first:
            number, first = number + 1, fields[1]
        if kind == "task":
            is_over = False
        elif kind in ("finished", "given up"):
            is_over = True
    return number, first, is_over

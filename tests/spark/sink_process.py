"""Writes to a topic in a process of its own, with a Spark of its own.

``sink_process.py JSON``, with these members: ``read`` and ``write``, the options of the source and
the sink; ``checkpoint``; ``conf`` of the session; and ``modes``, one after the other: ``follow``
(until killed), ``drain`` (what is there now) or ``batch`` (a frame). With ``fail_after``, the first
attempt of each task raises after so many rows. With ``meet``, a folder with a pipe, two copies of
the first task wait there for each other, halfway. What is explained is printed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog.spark import session
from lakelog.spark.datasource import HAS_READ_LIMITS

PIPE, MET = "pipe", "met"  # in the folder `meet`; the second says which attempts met
MEET_AFTER = 10_000  # rows

#: Spark 4.0 and 4.1 finish a micro-batch that was left unfinished, and then stop.
RUNS = 1 if HAS_READ_LIMITS else 2


def failing(after: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes rows on, but raises after so many in the first attempt of a task."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        rows = 0
        for batch in batches:
            for start in range(0, batch.num_rows, 100):
                if context.attemptNumber() == 0 and rows >= after:
                    raise RuntimeError("the first attempt fails")
                part = batch.slice(start, 100)
                rows += part.num_rows
                yield part

    return pass_on


def meeting(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes rows on, but in the first task not on from MEET_AFTER before a copy is as far."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        awaited = context.partitionId() == 0
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            yield batch
            if awaited and rows >= MEET_AFTER:
                awaited = False
                attempt = context.attemptNumber()
                # Opening a pipe takes until its other end is opened.
                os.close(os.open(folder / PIPE, os.O_WRONLY if attempt else os.O_RDONLY))
                with (folder / MET).open("a") as met:
                    met.write(f"{attempt}\n")

    return pass_on


def write(spark: Any, wanted: dict[str, Any], mode: str) -> None:
    reader = (spark.read if mode == "batch" else spark.readStream).format("lakelog")
    frame = reader.options(**wanted["read"]).load().select("key", "value")
    if wanted.get("fail_after"):
        frame = frame.mapInArrow(failing(wanted["fail_after"]), frame.schema)
    if wanted.get("meet"):
        frame = frame.mapInArrow(meeting(Path(wanted["meet"])), frame.schema)
    if mode == "batch":
        frame.explain("extended")
        frame.write.format("lakelog").options(**wanted["write"]).mode("append").save()
        return
    trigger = {"processingTime": "0 seconds"} if mode == "follow" else {"availableNow": True}
    writer = frame.writeStream.format("lakelog").options(**wanted["write"]).trigger(**trigger)
    for _ in range(RUNS):
        query = writer.option("checkpointLocation", wanted["checkpoint"]).start()
        query.awaitTermination()
        query.explain(True)


def main(text: str) -> None:
    wanted = json.loads(text)
    # How often a task is tried, a local master says in its URL.
    conf = {"spark.master": "local[2,3]", **wanted.get("conf", {})}
    spark = session("lakelog-sink", cores=2, conf=conf)
    for mode in wanted["modes"]:
        write(spark, wanted, mode)
        print("done", mode, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

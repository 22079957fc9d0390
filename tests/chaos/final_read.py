"""The whole log when all is over: as lakelog reads it, and without any of lakelog's code.

The second way opens the Delta table with deltalake and pyarrow, and the stream with XRANGE, and
decodes entries by what is written about their format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from uuid import UUID

import pyarrow as pa
import redis
from deltalake import DeltaTable
from redis.cluster import RedisCluster

from lakelog.lakelog import Lakelog

from .history import FinalLog, Partition, Seen, Span
from .payload import header_pairs, payload_of

_BY_LAKELOG = "log.read"
_BY_HAND = "deltalake and XRANGE"

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


def final_logs(log: Lakelog, cold: str, options: Mapping[str, str] | None) -> list[FinalLog]:
    """Every partition of every topic there is."""
    finals = []
    raw = _client(log)
    try:
        for topic in log.topics.list():
            rows: dict[int, _Found] = {}
            if topic.config.tiered:
                rows = _cold_rows(f"{cold}/{topic.name}/{topic.topic_id}", options)
            for number in range(topic.partitions):
                hot, hot_gaps = _hot_rows(raw, topic.name, number)
                by_hand = _both(rows.get(number, {}), hot, topic.name, number)
                finals.append(_final(log, topic.name, topic.topic_id, number, by_hand, hot_gaps))
    finally:
        raw.close()
    return finals


def _final(
    log: Lakelog, name: str, topic_id: UUID, number: int, by_hand: _Found, hot_gaps: list[Span]
) -> FinalLog:
    unified = log.log(name)
    offsets = unified.offsets([number])[number]
    gaps = {Span(*gap) for gap in offsets.gaps} | set(hot_gaps)
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
        Partition(str(topic_id), number),
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


def _cold_rows(path: str, options: Mapping[str, str] | None) -> dict[int, _Found]:
    """By partition, what the Delta table holds; a double is told by the caller's comparison."""
    if not DeltaTable.is_deltatable(path, dict(options or {})):
        return {}
    table = DeltaTable(path, storage_options=dict(options or {})).to_pyarrow_table()
    rows: dict[int, _Found] = {}
    for number in set(table.column("partition").to_pylist()):
        own = table.filter(pa.compute.equal(table.column("partition"), number))
        for offset, found in _rows(own):
            before = rows.setdefault(number, {}).setdefault(offset, found)
            if before != found:
                raise ReadersDifferError(f"{path}: offset {offset} is {before} and {found}")
        if len(rows[number]) != own.num_rows:
            raise ReadersDifferError(f"{path}: partition {number} has an offset twice")
    return rows


def _hot_rows(
    client: redis.Redis | RedisCluster, name: str, number: int
) -> tuple[_Found, list[Span]]:
    """What the stream holds, and the gaps that it declares."""
    rows: _Found = {}
    gaps = []
    for entry_id, fields in client.execute_command(
        "XRANGE", f"lakelog:stream:{name}:{number}", "-", "+"
    ):
        last, count = map(int, entry_id.decode().split("-"))
        pairs = list(fields.items()) if isinstance(fields, dict) else _pairs(fields)
        if pairs[0][0] == b"__gap":
            gaps.append(Span(*map(int, pairs[0][1].split(b"-"))))
            continue
        for offset, row in enumerate(_entry(pairs), last - count + 1):
            rows[offset] = row
    return rows, gaps


def _entry(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str | None]]:
    if pairs[0][0] == b"a":
        batch = pa.ipc.read_record_batch(pa.py_buffer(pairs[0][1]), _PRODUCED)
        batch = batch.append_column("offset", pa.array(range(batch.num_rows), pa.int64()))
        return [row for _, row in _rows(batch)]
    named = dict(pairs)
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
    # What compaction removed from the table may still be in Redis: readers take the table's word.
    archived_end = max(cold, default=-1) + 1
    return {**{at: row for at, row in hot.items() if at >= archived_end}, **cold}


class ReadersDifferError(AssertionError):
    """The tiers contradict each other, or themselves."""


def _pairs(fields: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(fields[::2], fields[1::2], strict=True))


def _client(log: Lakelog) -> redis.Redis | RedisCluster:
    url = log._source.url
    plain = re.sub(r"\?cluster=true$", "", url)
    return RedisCluster.from_url(plain) if plain != url else redis.Redis.from_url(plain)

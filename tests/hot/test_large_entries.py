"""Reading an answer to XRANGE past hiredis: the same as redis-py reads, whatever the stream has."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import redis

from lakelog.codec import ProducedBatch, encode
from lakelog.errors import CorruptRecordError
from lakelog.hot import connection as of_hot
from lakelog.hot.large_entries import LARGE_BYTES, read_entries
from lakelog.values.config import KIB, MIB, Compression, EntryFormat
from lakelog.values.record import PRODUCED

LARGE = os.urandom(LARGE_BYTES) + b"\r\n*2\r\n$3\r\n"
VERY_LARGE = os.urandom(3 * MIB)

#: By what they are, the fields of entries.
SHAPES: dict[str, list[bytes]] = {
    "large": [b"a", LARGE, b"c", b"01234567"],
    "very large": [b"a", VERY_LARGE, b"c", b"01234567"],
    "with its append time": [b"a", LARGE, b"c", b"\r\n$1\r\nx\r", b"t", b"1700000000000"],
    "just large": [b"a", LARGE[:LARGE_BYTES], b"c", b"01234567"],
    "not large": [b"a", LARGE[: LARGE_BYTES - 1], b"c", b"01234567"],
    "empty": [b"a", b"", b"c", b""],
    "fields": [b"__key", b"k", b"__ts", b"1", b"value", b"v"],
    "large fields": [b"__key", LARGE, b"__ts", b"1", b"value", LARGE],
    "nothing behind the message": [b"a", LARGE],
    "much behind the message": [b"a", LARGE, b"c", LARGE, b"d", b"e" * 100, b"f", b""],
    "a long name": [b"b" * 10_000, LARGE],
}


class InPieces:
    """A socket that gives a few bytes at a time."""

    def __init__(self, socket: Any, sizes: Iterator[int]) -> None:
        self._socket = socket
        self._sizes = sizes

    def recv_into(self, into: Any) -> int:
        return int(self._socket.recv_into(into[: next(self._sizes)]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


@pytest.fixture
def connection(redis_url) -> Iterator[Any]:
    pool = redis.ConnectionPool.from_url(redis_url)
    taken = pool.get_connection()
    yield taken
    pool.disconnect()


@pytest.fixture
def stream(redis_url) -> Iterator[Any]:
    """Adds entries of these shapes to a stream."""
    with redis.Redis.from_url(redis_url) as client:
        client.delete("large")

        def add(*shapes: str) -> None:
            for shape in shapes:
                client.execute_command("XADD", "large", "*", *SHAPES[shape])

        yield add
        client.delete("large")


def both(connection: Any, *more: Any) -> tuple[Any, Any]:
    """What redis-py reads, and `read_entries`, with another reply behind each."""
    answers = []
    for read in (type(connection).read_response, read_entries):
        connection.send_command("XRANGE", "large", "-", "+", *more)
        connection.send_command("ECHO", "behind")
        entries = read(connection)
        assert connection.read_response() == b"behind"
        answers.append([[name, list(map(bytes, fields))] for name, fields in entries])
    return answers[0], answers[1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beside", ["large", "fields"])
def test_entries_of_each_shape_are_read_as_redis_py_reads_them(connection, stream, shape, beside):
    stream(beside, shape, beside, shape)
    expected, found = both(connection)
    assert (len(expected), found) == (4, expected)


def test_an_empty_answer_is_one(connection, stream):
    assert both(connection) == ([], [])


def test_an_error_is_raised_and_the_replies_behind_it_come(connection, redis_url):
    with redis.Redis.from_url(redis_url) as client:
        client.set("large", "no stream")
    connection.send_command("XRANGE", "large", "-", "+")
    connection.send_command("ECHO", "behind")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        read_entries(connection)
    assert connection.read_response() == b"behind"
    with redis.Redis.from_url(redis_url) as client:
        client.delete("large")


@pytest.mark.parametrize("seed", range(6))
def test_it_does_not_matter_in_which_pieces_they_come(connection, stream, seed):
    chance = random.Random(seed)
    stream(*chance.choices(list(SHAPES), weights=[8, 1, 8, 4, *[1] * (len(SHAPES) - 4)], k=40))
    most = [1, 7, 100, 1000, 65_536, MIB][seed]
    sizes = (chance.randint(1, most) for _ in itertools.count())
    connection._sock = InPieces(connection._sock, sizes)
    expected, found = both(connection, "COUNT", 5 if most < 100 else 40)
    assert found == expected


@pytest.mark.parametrize("after", [1, 4, 60, 30_000])
def test_a_connection_that_ends_on_the_way_is_an_error(connection, stream, after):
    stream("large", "large", "large")
    left = after

    def sizes() -> Iterator[int]:
        nonlocal left
        while True:
            size = min(left, 1000)
            left -= size
            yield size

    connection._sock = InPieces(connection._sock, sizes())
    connection.send_command("XRANGE", "large", "-", "+")
    with pytest.raises(redis.ConnectionError):
        read_entries(connection)


def test_the_message_of_a_large_entry_is_received_where_it_stays(connection, stream):
    stream("large", "fields")
    connection.send_command("XRANGE", "large", "-", "+")
    (_, large), (_, fields) = read_entries(connection)
    assert isinstance(large[1], pa.Buffer)
    assert fields == SHAPES["fields"]


# -- through the log ---------------------------------------------------------------------------


def large_records(count: int) -> pa.RecordBatch:
    values = [os.urandom(KIB) for _ in range(count)]
    columns = [range(count), [None, *[b"k"] * (count - 1)], values, [[("h", b"1")]] * count]
    arrays = [pa.array(column, f.type) for column, f in zip(columns, PRODUCED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PRODUCED)


@pytest.fixture
def appended(make_bench):
    """A bench with some 40 large entries, and their records."""

    def append(compression: Compression) -> tuple[Any, pa.RecordBatch]:
        bench = make_bench()
        records = large_records(4000)
        entries = encode(records, EntryFormat.ARROW, compression)
        for number, entry in enumerate(entries):
            batch = ProducedBatch((entry,), 7 + number, 0, 0, entry.record_count - 1)
            bench.hot.append(bench.tp(), bench.topic.topic_id, batch)
        return bench, records

    return append


@pytest.mark.parametrize("compression", Compression)
def test_a_log_of_large_entries_is_read_as_it_was_appended(appended, monkeypatch, compression):
    bench, records = appended(compression)
    messages: list[Any] = []

    def read(connection: Any) -> Any:
        answer = read_entries(connection)
        messages.extend(fields[1] for _, fields in answer)
        return answer

    monkeypatch.setattr(of_hot, "read_entries", read)
    steps = [step.records for step in bench.hot.read(bench.tp(), 0)]
    assert any(isinstance(message, pa.Buffer) for message in messages)
    found = pa.Table.from_batches(steps).select(["key", "value", "headers"])
    assert found.equals(pa.Table.from_batches([records]).select(["key", "value", "headers"]))
    offsets = pa.Table.from_batches(steps)["offset"].to_pylist()
    assert offsets == list(range(records.num_rows))


def test_a_large_entry_that_is_damaged_is_named(appended):
    bench, _ = appended(Compression.NONE)
    stream = bench.keys()[0]
    entries = bench.client.xrange(stream)
    assert len(entries) > 12
    damaged_id, fields = entries[12]
    message = bytearray(fields[b"a"])
    message[-1000] ^= 1
    fields[b"a"] = bytes(message)
    bench.client.delete(stream)
    for entry_id, fields in entries:
        bench.client.xadd(stream, fields, entry_id)
    with pytest.raises(CorruptRecordError) as caught:
        list(bench.hot.read(bench.tp(), 0))
    assert str(caught.value.entry_id).encode() == damaged_id

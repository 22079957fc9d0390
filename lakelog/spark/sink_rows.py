"""Rows that Spark hands to a task, as the calls that append them.

Which partition a row goes to and where calls are cut depends on the task's rows and their order
alone, never on the time or on how Spark splits the rows into Arrow batches: a task that is repeated
makes the same calls, so that those which were made before are known again.

Runs on: executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..codec.enforced_columns import check_values
from ..errors import InvalidArgumentError
from ..ingest.bulk import MAX_CALL_BYTES
from ..ingest.given_records import as_columns
from ..ingest.partition_queue import MAX_CALL_ENTRIES
from ..ingest.partitioner import partitions_of_keys
from ..values.config import KIB, MIB, EntryFormat
from ..values.record import NO_TIMESTAMP_MS, PRODUCED
from ..values.topic import Topic

#: How much of a task is sorted by partition at a time: enough for sixteen partitions to get two
#: entries of the size the codec aims at, and small beside what a Python worker takes anyway.
PIECE_BYTES = 8 * MIB

#: So many bytes of records without a key go to one partition before the next one gets some.
STICK_BYTES = 256 * KIB

_RECORD_OVERHEAD_BYTES = 24  # so that empty records count too


class Rows(Struct, frozen=True):
    """The rows of one call."""

    topic: Topic
    partition: int
    records: pa.RecordBatch  # PRODUCED; timestamp -1: none was given


class TaskRows:
    """Cuts a task's rows into calls.

    Args:
        find_topic: the topic of a name; asked once for each.
        topic: of all rows; None: the column says.
        first_partition: where rows without a key begin, modulo the topic's partitions.
    """

    def __init__(
        self, find_topic: Callable[[str], Topic], topic: Topic | None, first_partition: int
    ) -> None:
        self._find_topic = find_topic
        self._topic = topic
        self._first_partition = first_partition
        self._topics: dict[str, Topic] = {}
        self._keyless_bytes: dict[str, int] = {}  # by topic, of the rows before

    def calls(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[Rows]]:
        """The calls of one piece after the other; within a partition in the order of the rows.

        Raises:
            LakelogError: a row that no topic can take: no topic, an unknown one or one without
                that partition, a value that is not what its column must hold, or not what the
                topic's columns say, where it enforces them.
        """
        for piece, sizes in _pieces(self._columns(batch) for batch in batches if batch.num_rows):
            calls: list[Rows] = []
            for topic, rows in self._by_topic(piece):
                part = piece if rows is None else piece.take(pa.array(rows))
                part_sizes = sizes if rows is None else sizes[rows]
                if topic.config.enforces_columns:
                    check_values(part.column("value"), topic.config)
                calls += self._by_partition(topic, part, part_sizes)
            yield calls

    def _columns(self, batch: pa.RecordBatch) -> pa.Table:
        """`PRODUCED`, then partition and, where it says something, topic."""
        table = pa.Table.from_batches([batch])
        names = [n for n in ("value", "key", "headers", "timestamp") if n in table.column_names]
        produced, _ = as_columns(table.select(names), NO_TIMESTAMP_MS)
        for name, kind in (("partition", pa.int32()), ("topic", pa.string())):
            if name == "topic" and self._topic is not None:
                continue
            given = name in table.column_names
            column = table[name].cast(kind) if given else pa.nulls(len(table), kind)
            produced = produced.append_column(name, column)
        return produced

    def _by_topic(self, piece: pa.RecordBatch) -> Iterator[tuple[Topic, np.ndarray | None]]:
        """Each topic and its rows; None: all of them."""
        if self._topic is not None:
            yield self._topic, None
            return
        names = piece.column("topic")
        if names.null_count:
            raise InvalidArgumentError(
                "null topic present in the data: a row's topic column is null. Fill the column, or "
                "name a topic for all rows with the option 'topic'"
            )
        encoded = names.dictionary_encode()
        numbers = encoded.indices.to_numpy()
        for number, name in enumerate(encoded.dictionary.to_pylist()):
            if name not in self._topics:
                self._topics[name] = self._find_topic(name)
            yield self._topics[name], np.flatnonzero(numbers == number)

    def _by_partition(
        self, topic: Topic, piece: pa.RecordBatch, sizes: np.ndarray
    ) -> Iterator[Rows]:
        numbers = self._assign(topic, piece, sizes)
        records = pa.RecordBatch.from_arrays(piece.columns[: len(PRODUCED)], schema=PRODUCED)
        # NumPy sorts 16-bit numbers by radix, several times faster.
        order = np.argsort(
            numbers.astype(np.int16) if topic.partitions < 2**15 else numbers, kind="stable"
        )
        max_records = (
            MAX_CALL_ENTRIES
            if topic.config["lakelog.entry.format"] is EntryFormat.FIELDS
            else piece.num_rows
        )
        for rows in _runs(order, numbers[order]):
            before = np.cumsum(sizes[rows]) - sizes[rows]
            cuts = before // MAX_CALL_BYTES + np.arange(len(rows)) // max_records
            for call in _runs(rows, cuts):
                whole = len(call) == piece.num_rows
                part = records if whole else records.take(pa.array(call))
                yield Rows(topic, int(numbers[call[0]]), part)

    def _assign(self, topic: Topic, piece: pa.RecordBatch, sizes: np.ndarray) -> np.ndarray:
        """Each row's partition: the one it asks for, else its key's, else by turns."""
        keys, asked = piece.column("key"), piece.column("partition")
        if keys.null_count == len(keys):
            numbers = np.zeros(len(keys), np.int32)
        else:
            numbers = partitions_of_keys(keys, topic.partitions)
        free = keys.is_null().to_numpy(zero_copy_only=False)
        if asked.null_count < len(asked):
            bounds = pc.min_max(asked)
            topic.partition(bounds["min"].as_py())  # refuses what is out of range
            topic.partition(bounds["max"].as_py())
            is_asked = asked.is_valid().to_numpy(zero_copy_only=False)
            numbers = np.where(is_asked, asked.fill_null(0).to_numpy(), numbers).astype(np.int32)
            free &= ~is_asked
        if free.any():
            before = self._keyless_bytes.get(topic.name, 0)
            upto = before + np.cumsum(sizes[free])
            turns = (upto - sizes[free]) // STICK_BYTES
            numbers[free] = (self._first_partition + turns) % topic.partitions
            self._keyless_bytes[topic.name] = int(upto[-1])
        return numbers


def _pieces(tables: Iterable[pa.Table]) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """The rows in pieces that reach `PIECE_BYTES`, with the bytes of each row."""
    parts: list[pa.Table] = []
    sizes: list[np.ndarray] = []
    held_bytes = 0
    for table in tables:
        table_sizes = _row_bytes(table)
        upto = held_bytes + np.cumsum(table_sizes)
        start = 0
        while upto[-1] >= PIECE_BYTES:
            end = int(np.searchsorted(upto, PIECE_BYTES)) + 1
            parts.append(table.slice(start, end - start))
            sizes.append(table_sizes[start:end])
            yield _joined(parts), np.concatenate(sizes)
            parts, sizes, start = [], [], end
            if start == len(table):
                break
            upto = upto - upto[end - 1]
        held_bytes = 0
        if start < len(table):
            parts.append(table.slice(start))
            sizes.append(table_sizes[start:])
            held_bytes = int(upto[-1])
    if parts:
        yield _joined(parts), np.concatenate(sizes)


def _joined(parts: list[pa.Table]) -> pa.RecordBatch:
    return pa.concat_tables(parts).combine_chunks().to_batches()[0]


def _row_bytes(table: pa.Table) -> np.ndarray:
    batch = table.combine_chunks().to_batches()[0]
    sizes = _lengths(batch.column("key")) + _lengths(batch.column("value"))
    headers = batch.column("headers")
    items = headers.flatten()
    if len(items):
        item_sizes = _lengths(items.field(0)) + _lengths(items.field(1)) + _RECORD_OVERHEAD_BYTES
        upto = np.concatenate(([0], np.cumsum(item_sizes)))
        ends = np.cumsum(headers.value_lengths().to_numpy())
        sizes += upto[ends] - upto[np.concatenate(([0], ends[:-1]))]
    return np.asarray(sizes + _RECORD_OVERHEAD_BYTES, np.int64)


def _lengths(column: pa.Array) -> np.ndarray:
    lengths = pc.fill_null(pc.binary_length(column), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _runs(rows: np.ndarray, marks: np.ndarray) -> list[np.ndarray]:
    """The rows cut wherever the mark changes."""
    return np.split(rows, np.flatnonzero(np.diff(marks)) + 1)

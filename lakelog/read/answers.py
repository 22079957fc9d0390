"""What calls answer with, as frames: offsets, groups, segments, partitions, polled records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa

from ..base.text_table import counted
from ..errors import InvalidArgumentError
from ..values.config import TopicConfig
from ..values.record import Record
from ..values.topic_partition import TopicPartition
from .frames import Frames, Values, opened


class Answer(Frames):
    """Rows of what a call answered with."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_table(self, values: Values = "columns") -> pa.Table:
        if {"key", "value"} <= {*self._table.column_names}:
            return opened(self._table, values)
        return self._table

    def __iter__(self) -> Iterator[pa.Table]:
        yield self._table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"{counted(len(self), 'row')} of {', '.join(self._table.column_names)}"

    def _config(self) -> TopicConfig:
        return TopicConfig()


def frame(answer: Any) -> Answer:
    """What a call answered with, a row each, as frames of pandas, polars, DuckDB and Arrow.

    Args:
        answer: an object of lakelog's (`LogOffsets`, a group, a segment, a record, …), or any
            iterable of them; a mapping of such by partition, as `TopicLog.offsets` and
            `Consumer.poll` give it; or what `Consumer.poll_arrow` gives. Of a `Status`, its
            partitions.

    Returns:
        Columns named as the objects' attributes are. What stands within another object is beside
        it; what several of them would call the same has the outer's name before it. Records have
        their values opened, see `Frames`.

    Raises:
        InvalidArgumentError: it is no such thing.
    """
    if isinstance(answer, (pa.Table, pa.RecordBatch)):
        return Answer(pa.table(answer.columns, schema=answer.schema))
    if isinstance(answer, Mapping) and any(isinstance(v, pa.RecordBatch) for v in answer.values()):
        return Answer(pa.concat_tables(_placed(tp, batch) for tp, batch in answer.items()))
    rows = [_row(one) for one in _objects(answer)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Answer(pa.table(columns))


def _place(topic_partition: TopicPartition) -> dict[str, Any]:
    return {"topic": topic_partition.topic, "partition": topic_partition.partition}


def _placed(topic_partition: TopicPartition, batch: pa.RecordBatch) -> pa.Table:
    table = pa.table(batch.columns, schema=batch.schema)
    for at, (name, value) in enumerate(_place(topic_partition).items()):
        table = table.add_column(at, name, pa.repeat(pa.scalar(value), len(table)))
    return table


def _objects(answer: Any) -> Iterator[Any]:
    if isinstance(answer, Mapping):
        for key, value in answer.items():
            for one in _objects(value):
                is_placed = isinstance(one, Record) or hasattr(one, "topic_partition")
                yield one if is_placed else (key, one)
    elif hasattr(answer, "partitions") and isinstance(answer.partitions, tuple):
        yield from answer.partitions
    elif isinstance(answer, msgspec.Struct):
        yield answer
    elif isinstance(answer, Iterable) and not isinstance(answer, (str, bytes)):
        for one in answer:
            yield from _objects(one)
    else:
        raise InvalidArgumentError(
            f"{answer!r:.200} has no rows: give what a call of lakelog's answered with, such as "
            "lake.status() or lake.log('orders').offsets()"
        )


def _row(one: Any) -> dict[str, Any]:
    if isinstance(one, tuple):
        key, value = one
        placed = _place(key) if isinstance(key, TopicPartition) else {"partition": key}
        return placed | _row(value)
    found: dict[str, Any] = {}
    for name in (*one.__struct_fields__, *_properties(type(one))):
        value = getattr(one, name)
        if isinstance(value, TopicPartition):
            found |= _place(value)
        elif isinstance(value, msgspec.Struct):
            found |= {
                inner if inner not in found else f"{name}_{inner}": told
                for inner, told in _row(value).items()
            }
        else:
            found[name] = _plain(value)
    if isinstance(one, Record):
        found["headers"] = [{"key": name, "value": value} for name, value in one.headers]
    return found


def _properties(kind: type) -> list[str]:
    """Those that tell more of an object than its fields; a record's are other names of its own."""
    if kind is Record:
        return []
    return [name for name, one in vars(kind).items() if isinstance(one, property)]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):  # first, as some are texts or numbers too
        return value.value
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()} or None
    if isinstance(value, msgspec.Struct):
        return _row(value)
    if isinstance(value, TopicPartition):
        return str(value)
    if isinstance(value, Iterable):
        return [_plain(inner) for inner in value]
    return str(value)

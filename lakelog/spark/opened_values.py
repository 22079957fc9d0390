"""Decrypting the values of a frame, by Spark's tasks.

Where Spark has functions over Arrow columns (4.1 and later), only the value is such a function's:
filters on all else are still pushed down to Delta, and a query that does not ask for values
decrypts none. Older ones hand over whole rows.

Runs on: driver, but for what the tasks call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..read.values import Values
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What decrypting a value asks for, and what names it in an error.
_ASKED = ("key", "value", "partition", "offset")


def opened_values(frame: DataFrame, topic: Topic) -> DataFrame:
    """The frame with its values as they were given.

    Args:
        frame: with the columns of `kafka_columns.COLUMNS`.
        topic: as it is now, with all of its data keys.
    """
    from pyspark.sql import functions

    arrow_udf: Callable[..., Any] | None = getattr(functions, "arrow_udf", None)
    if arrow_udf is None:
        return frame.mapInArrow(partial(_opened_rows, topic), frame.schema)

    def opened(key: pa.Array, value: pa.Array, partition: pa.Array, offset: pa.Array) -> pa.Array:
        return _opened(topic, key, value, partition, offset)

    # Spark reads the types of its arguments off the function.
    opened.__annotations__ = dict.fromkeys((*_ASKED, "return"), pa.Array)
    columns = [functions.col(name) for name in _ASKED]
    return frame.withColumn("value", arrow_udf(opened, "binary")(*columns))


def _opened_rows(topic: Topic, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on: executor."""
    for batch in batches:
        place = batch.schema.get_field_index("value")
        values = _opened(topic, *(batch.column(name) for name in _ASKED))
        yield batch.set_column(place, batch.schema.field(place), values)


def _opened(
    topic: Topic, key: pa.Array, value: pa.Array, partition: pa.Array, offset: pa.Array
) -> pa.Array:
    """Runs on: executor."""
    return Values(topic, lambda one: one).of_columns(
        key.cast(pa.binary()),
        value.cast(pa.binary()),
        lambda row: (TopicPartition(topic.name, partition[row].as_py()), offset[row].as_py()),
    )

"""Values that are not what a topic's columns say are refused before they are appended."""

from __future__ import annotations

import pyarrow as pa

from ..errors import InvalidRecordError
from ..values.config import ENFORCE_COLUMNS, TopicConfig
from ..values.value_ddl import VALUE_ERROR
from .value_columns import columns_of, value_schema


def wrong_values(
    values: pa.Array | pa.ChunkedArray, config: TopicConfig
) -> list[InvalidRecordError]:
    """An error for each value that is not what the columns say, with its ``index``, in order.

    A null value is always what they say.

    Args:
        values: binary; about to be appended.
        config: of their topic, which enforces its columns.

    Raises:
        MissingExtraError: what reads values of their format is not installed.
    """
    schema = value_schema(config.value_columns, config.value_format)
    errors = columns_of(values, schema).column(VALUE_ERROR).to_pylist()
    return [
        InvalidRecordError(
            f"record {index} was not appended, as {ENFORCE_COLUMNS}=true: its value is not what "
            f"lakelog.value.columns of the topic say: {why}",
            index=index,
        )
        for index, why in enumerate(errors)
        if why is not None
    ]


def check_values(values: pa.Array | pa.ChunkedArray, config: TopicConfig) -> None:
    """Raises the first of `wrong_values`."""
    for error in wrong_values(values, config):
        raise error

"""Which status table a cold root has: `PathStatusTable` or `NamedStatusTable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..cold.place import ColdPlace
from .path_status_table import PathStatusTable
from .status_table import StatusTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_status_table(
    place: ColdPlace, spark: Callable[[], SparkSession] | None = None
) -> StatusTable:
    """The status table of a cold root.

    Args:
        spark: gives the session where one is needed: for tables by name. Default: the one there
            is, or a local one.
    """
    from ..spark.session import session
    from .named_status_table import NamedStatusTable, register_status

    spark = spark or session
    if place.storage is None:
        return NamedStatusTable(place, spark)
    if place.schema is None:
        return PathStatusTable(place.storage)
    schema = place.schema
    return PathStatusTable(
        place.storage, after_create=lambda path: register_status(spark(), schema, path)
    )

"""The files of a table by name, as Spark reads them.

Whatever the catalog keeps, wherever the files are: deletion vectors, columns with other names in
the files, commits that only the catalog knows, a store that wants its keys.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NamedFile(Struct, frozen=True):
    """One file of a table by name.

    Attributes:
        path: its URL.
        rows: those that are not deleted, with all the table's columns, in the order of offsets; at
            least one.
    """

    path: str
    partition: int
    segment: int
    rows: pa.Table


def files_by_spark(spark: SparkSession, table: str, version: int | None = None) -> list[NamedFile]:
    """The files that have rows, in one query.

    Args:
        table: its name, as Spark takes it.
        version: of the table; None: its newest.
    """
    as_of = "" if version is None else f" VERSION AS OF {version}"
    query = f"SELECT *, _metadata.file_path FROM {table}{as_of}"
    everything = (
        spark.sql(query).toArrow().sort_by([("file_path", "ascending"), ("offset", "ascending")])
    )
    paths = everything["file_path"].to_pylist()
    starts = [n for n, path in enumerate(paths) if n == 0 or paths[n - 1] != path]
    found = []
    for start, end in pairwise([*starts, len(paths)]):
        rows = everything.slice(start, end - start)
        partition, segment = (rows[name][0].as_py() for name in ("partition", "segment"))
        found.append(NamedFile(paths[start], partition, segment, rows.drop_columns("file_path")))
    return found

"""Where the tables of topics lie: what ``cold=…, location=…`` say.

| cold             | location | tables                                                           |
|------------------|----------|------------------------------------------------------------------|
| a path or URL    |          | at paths: `PathRoot`                                             |
| `catalog.schema` |          | the catalog's own (managed), by name: `NamedRoot`                |
| `catalog.schema` | a path   | at paths, each known to the catalog by its name: `PathRoot`      |

Two names with a dot and without a slash are a schema; a folder of such a name is ``./a.b``. On
Databricks a folder begins with ``/``: any other lies in the working directory, on the disk of a
machine that goes with its cluster, and is rarely what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..cold.by_name.names import SCHEMA
from ..cold.store.object_store import check_lasts
from ..cold.store.storage import Storage
from ..errors import InvalidArgumentError
from ..spark.open_session import open_session
from .by_path import PathRoot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .by_name import NamedRoot

#: One of the two kinds, which have the same methods: `PathRoot` says what each is for. A value: it
#: can be pickled, compared and hashed. As a string, how people call it.
ColdRoot: TypeAlias = "PathRoot | NamedRoot"


def cold_root(
    cold: str | Path | None,
    location: str | Path | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    spark: Callable[[], SparkSession] = open_session,
    tables_at: str | None = None,
) -> ColdRoot | None:
    """The place that is meant; None where none is named.

    Args:
        spark: gives the session that tables by name are opened with.
        tables_at: finds tables by name where there is no session; see `TableLocation`.

    Raises:
        InvalidArgumentError: a location, or storage options, that go with nothing; on Databricks,
            a relative path.
        ColdTierError: no place that a Delta commit can be made in.
    """
    schema = cold if isinstance(cold, str) and SCHEMA.fullmatch(cold) else None
    if location is not None and schema is None:
        raise InvalidArgumentError(
            f"location={str(location)!r} goes with cold='catalog.schema', not with {cold!r}: it "
            "says where the schema's tables lie"
        )
    path = cold if schema is None else location
    if path is not None:
        text = str(path) if isinstance(path, PathLike) else path
        root = PathRoot(Storage(text, storage_options), schema)
        check_lasts(text, "cold" if schema is None else "location")
        return root
    if storage_options:
        raise InvalidArgumentError("storage options open an object store, and none is named")
    if schema is None:
        return None
    from .by_name import NamedRoot

    return NamedRoot(schema, spark, tables_at)

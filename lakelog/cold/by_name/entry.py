"""What a catalog has under a name. Asks in SQL alone, so it works on Spark Connect too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from msgspec import Struct, field

from ..properties import TOPIC_ID_PROPERTY, TOPIC_NAME_PROPERTY
from ..store_errors import error_class, first_sentence
from .names import TableName
from .properties import joined

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: The row after which DESCRIBE speaks of the table or view itself, no longer of its columns. Of a
#: view, catalogs other than Spark's own say so.
_DETAILS = frozenset({"# Detailed Table Information", "# Detailed View Information"})

#: Characters of a refused statement that the error shows.
STATEMENT_SHOWN = 200


class CatalogEntry(Struct, frozen=True):
    """A table or a view."""

    kind: str  # EXTERNAL, MANAGED or VIEW, as catalogs say
    location: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def topic_name(self) -> str | None:
        """The topic it belongs to; None if it names no topic."""
        return self.properties.get(TOPIC_NAME_PROPERTY)

    def __str__(self) -> str:
        what = "view" if self.kind == "VIEW" else f"{self.kind.lower()} table"
        if self.topic_name is None:
            owner = "that belongs to no topic"
        else:
            owner = f"of topic {self.topic_name!r} with id {self.properties.get(TOPIC_ID_PROPERTY)}"
        return f"the {what} {owner}" + (f", at {self.location}" if self.location else "")


def look_up(spark: SparkSession, name: TableName) -> CatalogEntry | None:
    """The table or view of a name; None if there is none.

    Raises:
        ColdTierError: the catalog does not say.
    """
    try:
        if not spark.catalog.tableExists(str(name)):
            return None
    except Exception as error:
        raise error_class(first_sentence(error))(
            f"the catalog does not say what {name} is: {first_sentence(error)}. If its folder was "
            f"deleted, DROP TABLE {name} removes the name too",
            path=str(name),
        ) from error
    with _refused(f"DESCRIBE TABLE EXTENDED {name}"):
        details = read_details(spark, str(name))
    with _refused(f"SHOW TBLPROPERTIES {name}"):
        properties = read_properties(spark, str(name))
    return CatalogEntry(details.get("Type", ""), details.get("Location", ""), properties)


def read_details(spark: SparkSession, name: str) -> dict[str, str]:
    """What a catalog says of a table or view besides its columns: ``Type``, ``Location`` and more.

    Spark's errors are raised as they are.
    """
    details: dict[str, str] = {}
    among_details = False
    for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect():
        # A column may be called Type or Location too.
        among_details = among_details or row["col_name"] in _DETAILS
        if among_details:
            details[row["col_name"]] = row["data_type"]
    return details


def read_properties(spark: SparkSession, name: str) -> dict[str, str]:
    """The properties of a table or view. Spark's errors are raised as they are."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    return joined({row["key"]: row["value"] for row in rows})


def column_comments(spark: SparkSession, name: TableName) -> dict[str, str]:
    """The columns of a table, each with its comment or an empty text.

    Raises:
        ColdTierError: there is no such table.
    """
    try:
        return {
            field.name: field.metadata.get("comment", "") for field in spark.table(str(name)).schema
        }
    except Exception as error:
        raise error_class(first_sentence(error))(
            f"the table {name} cannot be read: {first_sentence(error)}", path=str(name)
        ) from error


def run(spark: SparkSession, sql: str) -> list[Any]:
    """The rows that a statement gives.

    Raises:
        ColdTierError: Spark or the catalog refuses it.
    """
    with _refused(sql):
        return list(spark.sql(sql).collect())


def table_of(spark: SparkSession, sql: str) -> pa.Table:
    """As `run`, for statements that may give many rows.

    Raises:
        ColdTierError: Spark or the catalog refuses it.
    """
    with _refused(sql):
        return spark.sql(sql).toArrow()


@contextmanager
def _refused(sql: str) -> Iterator[None]:
    """Say which statement Spark or the catalog refused."""
    try:
        yield
    except Exception as error:
        raise error_class(first_sentence(error))(
            f"the catalog refuses {sql[:STATEMENT_SHOWN]!r}: {first_sentence(error)}"
        ) from error


def same_place(one: str, other: str) -> bool:
    """Whether two spellings name one location; a catalog has its own spelling."""
    return bool(_spellings(one) & _spellings(other))


def _spellings(location: str) -> set[str]:
    scheme, separator, rest = location.partition(":/")
    if not separator:
        scheme, rest = "file", location
    scheme = {"s3a": "s3", "s3n": "s3"}.get(scheme, scheme)
    rest = re.sub("/+", "/", rest).strip("/")
    return {f"{scheme}:/{rest}", f"{scheme}:/{unquote(rest)}"}

"""What a catalog has under a name or in a schema. Asks in SQL alone, so Spark Connect will do.

Runs on: driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from msgspec import Struct, field

from ..properties import TOPIC_ID_PROPERTY, TOPIC_NAME_PROPERTY
from ..store_errors import error_class, first_sentence
from .definition import joined
from .names import TableName, quoted, quoted_text
from .spark_errors import naming

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


_LINE = re.compile(r"^(Type|Provider|Location): *(.*?)\s*$", re.MULTILINE)


def delta_tables(
    spark: SparkSession, catalog: str, schema: str, prefix: str = ""
) -> dict[str, str | None]:
    """The tables that may be Delta's, by name, and the paths where they lie; None: it is not said.

    Args:
        prefix: of the names.

    Raises:
        ColdTierError: the catalog does not list them.
    """
    within = quoted(catalog, schema)
    try:
        listed = f"SHOW TABLE EXTENDED IN {within} LIKE {quoted_text(prefix + '*')}"
        rows = spark.sql(listed).collect()
    except Exception:  # not every catalog can, nor if one view is broken
        return dict.fromkeys(_names_alone(spark, within, prefix))
    found: dict[str, str | None] = {}
    for row in rows:
        said = dict(reversed(_LINE.findall(row["information"])))  # the first of each: before a text
        is_view = said.get("Type") == "VIEW" or row["isTemporary"]
        if not is_view and said.get("Provider", "delta").lower() == "delta":
            found[row["tableName"]] = said.get("Location") or None
    return found


def _names_alone(spark: SparkSession, within: str, prefix: str) -> set[str]:
    with naming(within):
        tables = spark.sql(f"SHOW TABLES IN {within}").collect()
        views = spark.sql(f"SHOW VIEWS IN {within}").collect()
    names = {row["tableName"] for row in tables} - {row[1] for row in views}
    return {name for name in names if name.startswith(prefix)}

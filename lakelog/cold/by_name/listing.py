"""The tables of a schema in one question, whoever made them: there may be a thousand.

Runs on: driver.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .names import quoted, quoted_text
from .query_errors import naming

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

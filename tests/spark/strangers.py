"""What somebody else does to a table by name, in each catalog what it lets them do."""

from __future__ import annotations

from typing import Any

from tests.support.unity_catalog import SPARKS_OWN


def is_managed(table: str) -> bool:
    """Whether the catalog of ``catalog.schema.table`` keeps OPTIMIZE and VACUUM to itself."""
    return table.partition(".")[0] != SPARKS_OWN


def rewrite(spark: Any, table: str, *, z_order_by: str | None = None) -> None:
    """A commit after which the same rows lie in other files.

    Where the catalog keeps OPTIMIZE to itself, an UPDATE that changes no value: each third row
    moves into a new file, and a deletion vector hides where it was.
    """
    if is_managed(table):
        spark.sql(f"UPDATE {table} SET value = value WHERE offset % 3 = 0")
        return
    z_order = "" if z_order_by is None else f" ZORDER BY (`{z_order_by}`)"
    spark.sql(f"OPTIMIZE {table}{z_order}")


def vacuum(spark: Any, table: str) -> None:
    """Deletes what the table names no more; nothing where the catalog does that when it likes."""
    if not is_managed(table):
        spark.sql(f"VACUUM {table}")

"""Table properties that somebody set and that will be in somebody's way. Pure.

Those that change the table's protocol are told by whoever looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import ColdTierRefusedError
from ..values.config import MINUTE_MS
from .schema import FILE_RETENTION_PROPERTY, STATISTICS_PROPERTY, file_retention_ms

#: Spark's checkpoints drop txn actions that are older, and all that do not say how old they are.
TXN_RETENTION_PROPERTY = "delta.setTransactionRetentionDuration"

APPEND_ONLY_PROPERTY = "delta.appendOnly"

#: More than writing a file and committing it takes.
_WRITTEN_WITHIN_MS = 10 * MINUTE_MS

_JSON_STATISTICS = "delta.checkpoint.writeStatsAsJson"
_STRUCT_STATISTICS = "delta.checkpoint.writeStatsAsStruct"


def warnings(properties: Mapping[str, str]) -> Iterator[str]:
    """What comes of them, and what to do, a sentence each."""
    if TXN_RETENTION_PROPERTY in properties:
        yield (
            f"{TXN_RETENTION_PROPERTY} is {properties[TXN_RETENTION_PROPERTY]!r}: Spark's "
            "checkpoints drop registers, which say how far the topic is archived. The next archive "
            f"run states them so that they stay. {unset(TXN_RETENTION_PROPERTY)}"
        )
    if _is(properties, _JSON_STATISTICS, "false") and not _is(
        properties, _STRUCT_STATISTICS, "true"
    ):
        yield (
            f"{_JSON_STATISTICS} is 'false' without {_STRUCT_STATISTICS}='true': after Spark's "
            "next checkpoint nothing says when a file's records are, so that none expires by "
            "retention.ms, nor which records a file has that Spark's OPTIMIZE wrote. "
            f"{unset(_JSON_STATISTICS)}"
        )
    if _is(properties, APPEND_ONLY_PROPERTY, "true"):
        yield (
            f"{APPEND_ONLY_PROPERTY} is 'true': nothing can be deleted from such a table, so that "
            f"cleanups and erasures fail. {unset(APPEND_ONLY_PROPERTY)}"
        )
    named = properties.get(STATISTICS_PROPERTY)
    if named is not None and not {"offset", "timestamp"} <= set(named.replace("`", "").split(",")):
        yield (
            f"{STATISTICS_PROPERTY} is {named!r}, without offset and timestamp: the files of the "
            "next OPTIMIZE by Spark do not say which records they hold, and lakelog refuses them. "
            "Add both"
        )
    try:
        kept_ms = file_retention_ms(properties)
    except ColdTierRefusedError as error:
        yield error.message
        return
    if kept_ms < _WRITTEN_WITHIN_MS:
        yield (
            f"{FILE_RETENTION_PROPERTY} is {properties[FILE_RETENTION_PROPERTY]!r}: a VACUUM by "
            "Spark takes files that are being written. Set the topic's file.delete.delay.ms to "
            "600000 (ten minutes) or more"
        )


def _is(properties: Mapping[str, str], name: str, value: str) -> bool:
    return properties.get(name, "").strip().lower() == value


def unset(name: str) -> str:
    """How a property is taken back."""
    return f"Undo it in Spark: ALTER TABLE … UNSET TBLPROPERTIES ('{name}')"

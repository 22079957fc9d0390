"""The limits that lakelog enforces, read from where they are enforced."""

from __future__ import annotations

from msgspec import Struct

from ...codec.fields_entry import MAX_FIELDS
from ...codec.value_columns import MAX_DEPTH
from ...hot.append import MAX_ENTRY_VALUES
from ...hot.connection import MAX_CONNECTIONS
from ...hot.registry import MAX_PARTITIONS
from ...ingest.bulk import MAX_CALL_BYTES
from ...ingest.partition_queue import MAX_CALL_ENTRIES
from ...values.config import INT32_MAX, setting
from ...values.producer_calls import MAX_SEQUENCES, REMEMBERED_CALLS
from ...values.record import MAX_OFFSET
from ...values.reservation import FEW_OFFSETS, FIRST_OFFSETS, MOST_OFFSETS
from ...values.topic import MAX_NAME_LENGTH


class Limit(Struct, frozen=True):
    """One thing that may get so large."""

    what: str
    most: int
    unit: str
    beyond: str  # what happens, or what raises it


def limits() -> tuple[Limit, ...]:
    """All of them, in the order in which they are shown."""
    entry, decoded, segment = (
        int(setting(name).default)
        for name in ("max.message.bytes", "lakelog.max.decoded.bytes", "segment.bytes")
    )
    return (
        Limit(
            "offset of a record",
            MAX_OFFSET - 2,
            "",
            "`OffsetsExhaustedError`; write to another topic",
        ),
        Limit("partitions of a topic", MAX_PARTITIONS, "", "refused"),
        Limit("name of a topic", MAX_NAME_LENGTH, "characters", "refused, as by Kafka"),
        Limit(
            "entry as stored, so also a record",
            entry,
            "bytes",
            f"`RecordTooLargeError`; `max.message.bytes` raises it to {INT32_MAX:,}",
        ),
        Limit(
            "entry once decompressed",
            decoded,
            "bytes",
            f"likewise; `lakelog.max.decoded.bytes` raises it to {INT32_MAX:,}",
        ),
        Limit(
            "segment",
            segment,
            "bytes",
            f"the next one begins; `segment.bytes` raises it to {INT32_MAX:,}",
        ),
        Limit("fields of a record by themselves", MAX_FIELDS, "", "stored as Arrow instead"),
        Limit("names and values of an entry", MAX_ENTRY_VALUES, "", "refused; Lua takes no more"),
        Limit("one-record entries of a call", MAX_CALL_ENTRIES, "", "the next call takes them"),
        Limit("call of `send_batch`", MAX_CALL_BYTES, "bytes", "the next call takes them"),
        Limit("calls under way a partition", REMEMBERED_CALLS, "", "`max_in_flight`; they wait"),
        Limit("rows of a Spark task for a partition", MAX_SEQUENCES - 1, "", "refused"),
        Limit(
            "offsets that a lost tail skips",
            MOST_OFFSETS,
            "",
            f"as many as the partition has archived, {FIRST_OFFSETS:,} at least; in an embedded "
            f"log as many as it has records, {FEW_OFFSETS:,} at least",
        ),
        Limit("nesting of a JSON value in typed columns", MAX_DEPTH, "", "the columns are null"),
        Limit("connections of a process to a server", MAX_CONNECTIONS, "", "callers wait"),
    )


def rows() -> list[str]:
    """Rows of the Markdown table that shows them."""
    return [
        f"| {one.what} | {one.most:,}{f' {one.unit}' if one.unit else ''} | {one.beyond} |"
        for one in limits()
    ]

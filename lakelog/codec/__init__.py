"""Records ⇄ entries; knows neither Redis nor what offsets mean to a log."""

from .codec import AUTO_ARROW_RECORDS, decode, encode
from .compression import AdaptiveCompression, resolve_compression
from .decoded_size import decoded_bytes, in_steps
from .entry import Entry, EntryId, ProducedBatch, gap_fields, gap_of
from .fields_entry import Row

__all__ = [
    "AUTO_ARROW_RECORDS",
    "AdaptiveCompression",
    "Entry",
    "EntryId",
    "ProducedBatch",
    "Row",
    "decode",
    "decoded_bytes",
    "encode",
    "gap_fields",
    "gap_of",
    "in_steps",
    "resolve_compression",
]

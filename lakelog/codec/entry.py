"""An entry: what one XADD stores, and the id that says which offsets it holds.

| part  | format                                                                               |
|-------|--------------------------------------------------------------------------------------|
| id    | ``{last_offset}-{record_count}``: of ``[last_offset - record_count + 1, last_offset]`` |
| arrow | ``a``, ``c`` (`arrow_entry`): many records                                           |
| fields| ``__ts`` … ``__crc`` (`fields_entry`): one record, readable in redis-cli             |
| kafka | ``__v`` = 3, ``k`` (`kafka_entry`): a record batch of Kafka's, as it was sent        |
| newer | any other ``__v``: what a format begins with that this version does not know         |
| gap   | ``__gap`` = ``{start}-{end}``: offsets skipped after an unclean stop; no records     |
| tail  | ``t`` = append time in ms, added by the append script under LogAppendTime            |

The first field's name decides the format, and of ``__v`` its value. The tail lies outside the
entry's CRC, because the server that adds it cannot compute one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ..errors import (
    CorruptRecordError,
    ForeignEntryError,
    InvalidArgumentError,
    NewerVersionError,
)
from ..values.format_version import KAFKA_FORMAT, newer
from ..values.producer_calls import MAX_SEQUENCES
from ..values.record import MAX_OFFSET
from ..values.topic_partition import OffsetRange

#: The largest timestamp a record can have: readers count microseconds in 64 bits.
MAX_TIMESTAMP_MS = (2**63 - 1) // 1000

GAP_FIELD = b"__gap"
VERSION_FIELD = b"__v"
KAFKA_VERSION = b"%d" % KAFKA_FORMAT
BATCH_FIELD = b"k"  # of a kafka entry, behind its version
DECODED_FIELD = b"d"
APPEND_TIME_FIELD = b"t"

_ID = re.compile(r"(\d{1,20})-(\d{1,20})", re.ASCII)
_GAP = re.compile(rb"(\d{1,16})-(\d{1,16})")


class EntryId(NamedTuple):
    """The offsets of one entry; prints as the stream id."""

    last_offset: int
    record_count: int

    @classmethod
    def parse(cls, text: bytes | str) -> EntryId:
        """Parses a stream id.

        Raises:
            ForeignEntryError: not an id that lakelog gives.
        """
        if isinstance(text, bytes):
            text = text.decode("latin-1")
        match = _ID.fullmatch(text)
        if match is None:
            raise ForeignEntryError(f"{text!r} is not a stream id", entry_id=text)
        return cls(int(match[1]), int(match[2])).checked()

    def checked(self) -> EntryId:
        """The id itself, if it names at least one offset and all are from 0 to below 2^53.

        Raises:
            ForeignEntryError: it does not.
        """
        if not (1 <= self.record_count <= self.last_offset + 1 and self.last_offset < MAX_OFFSET):
            raise ForeignEntryError(
                f"stream id {self} was not given by lakelog: it should read "
                "{last offset}-{record count}. Something else writes to this stream; stop it and "
                "delete its entries",
                entry_id=self,
            )
        return self

    @property
    def base_offset(self) -> int:
        """The first offset."""
        return self.last_offset - self.record_count + 1

    @property
    def end_offset(self) -> int:
        """One past the last offset."""
        return self.last_offset + 1

    def __str__(self) -> str:
        return f"{self.last_offset}-{self.record_count}"


class Entry(Struct, frozen=True):
    """An encoded entry, and what append must know of it without decoding."""

    record_count: int  # ≥ 1
    fields: list[bytes]  # name, value, name, value …, as XADD takes them
    size_bytes: int  # of all names and values
    decoded_bytes: int  # likewise, once decompressed
    min_timestamp_ms: int  # of timestamps that are not -1; -1 if there is none
    max_timestamp_ms: int  # likewise
    first_keyless: int | None  # index of the first record without a key


class ProducedBatch(Struct, frozen=True):
    """The entries of one append call: the unit of idempotence, resent unchanged."""

    entries: tuple[Entry, ...]  # at least one
    producer_id: int
    epoch: int
    first_sequence: int
    last_sequence: int  # inclusive
    #: Checksums, as hex digits, of the producer's records of this epoch before this batch, and with
    #: it. For work that is repeated as a whole by a process that does not know how far the first
    #: one got: a batch that does not continue or repeat the stored records is refused.
    checksums: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.entries:
            raise InvalidArgumentError("a produced batch has at least one entry")
        # Sequences wrap from 2^31 - 1 to 0, perhaps in the middle of a batch.
        if (self.last_sequence - self.first_sequence) % MAX_SEQUENCES + 1 != self.record_count:
            raise InvalidArgumentError(
                f"sequences {self.first_sequence}..{self.last_sequence} do not count the "
                f"{self.record_count} records of the batch: each record takes one"
            )

    @property
    def record_count(self) -> int:
        return sum(entry.record_count for entry in self.entries)

    @property
    def size_bytes(self) -> int:
        """As stored."""
        return sum(entry.size_bytes for entry in self.entries)


# -- gaps --------------------------------------------------------------------------------------


def gap_fields(start_offset: int, end_offset: int) -> list[bytes]:
    """The fields of the entry that declares ``[start_offset, end_offset)`` skipped."""
    return [GAP_FIELD, b"%d-%d" % (start_offset, end_offset)]


def gap_of(entry_id: EntryId, fields: Sequence[bytes]) -> OffsetRange | None:
    """The offsets that a gap entry declares skipped; None if the entry is not a gap entry.

    Raises:
        CorruptRecordError: its id and its text name different offsets.
    """
    if not fields or fields[0] != GAP_FIELD:
        return None
    gap = OffsetRange(entry_id.base_offset, entry_id.end_offset)
    match = _GAP.fullmatch(fields[1]) if len(fields) == 2 else None
    if match is None or (int(match[1]), int(match[2])) != gap:
        raise CorruptRecordError(
            f"gap entry {entry_id} should declare offsets [{gap.start}, {gap.end}) skipped, but "
            f"holds {fields!r}",
            entry_id=entry_id,
        )
    return gap


# -- what both record formats share ------------------------------------------------------------


def append_time_ms(entry_id: EntryId, tail: Sequence[bytes]) -> int | None:
    """The append time in the fields after an entry's CRC; None if there are none.

    Raises:
        CorruptRecordError: they are something else.
    """
    if not tail:
        return None
    if len(tail) == 2 and tail[0] == APPEND_TIME_FIELD and re.fullmatch(rb"\d{1,16}", tail[1]):
        time_ms = int(tail[1])
        if time_ms <= MAX_TIMESTAMP_MS:
            return time_ms
    raise corrupt(entry_id, f"after its CRC it holds {list(tail)!r}, which is no append time")


def corrupt(entry_id: EntryId, what: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"entry {entry_id} is not what was written: {what}. Restore it from a replica or a backup",
        entry_id=entry_id,
    )


def newer_entry(entry_id: EntryId, found: str) -> NewerVersionError:
    """The error for an entry that has something only a newer lakelog knows."""
    return newer(f"entry {entry_id}", found).changed(entry_id=entry_id)

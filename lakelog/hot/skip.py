"""Skips entries that block their partition: they are taken out, and their offsets become a gap.

The gap is declared between two segments. It takes one script; where the stream has to be written
anew, that is done before, by parts that nobody sees. See ``skip.lua``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..base.failpoints import failpoint
from ..codec import EntryId, decode
from ..errors import (
    ConcurrentChangeError,
    CorruptRecordError,
    ForeignEntryError,
    InvalidArgumentError,
    PolicyViolationError,
)
from ..values.offsets import HotSegment
from ..values.record import NO_TIMESTAMP_MS
from ..values.topic_partition import OffsetRange, TopicPartition
from .connection import Servers, call_script
from .declared import Declared, check_topic_id, parse_gaps
from .foreign import foreign_if_illegible
from .inspection import Inspection
from .keys import Keys
from .mending import segment_text

_ATTEMPTS = 20


class BadEntry(Struct, frozen=True):
    """An entry that may be skipped."""

    entry_id: str
    gap: OffsetRange  # empty: other entries hold its offsets, or it names none
    flaw: str
    fields: tuple[bytes, ...]  # names and values; empty: there is no such entry

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.fields))


class _Look(Struct, frozen=True):
    gap: OffsetRange
    open_base: int
    declared: Declared
    fields: tuple[bytes, ...]  # empty: no such entry
    cut: tuple[tuple[bytes, HotSegment], ...]  # the closed segments that the gap cuts, as stored


class HotSkips:
    """Skips entries of one partition, and keeps a note of each."""

    def __init__(
        self, servers: Servers, keys: Keys, topic_partition: TopicPartition, topic_id: UUID
    ) -> None:
        self._servers = servers
        self._keys = keys
        self._topic_partition = topic_partition
        self._topic_id = topic_id
        self._inspection = Inspection(servers, keys)

    def look(self, entry_id: str) -> BadEntry:
        """The entry, and what is wrong with it.

        Args:
            entry_id: as XRANGE and the errors show it, ``{last offset}-{record count}``.

        Raises:
            InvalidArgumentError: not a stream id, or neither an entry nor a hole.
            PolicyViolationError: the entry is sound and in its place.
            NewerVersionError: a newer lakelog wrote it.
            UnknownTopicIdError: the topic was dropped.
        """
        _check_id(entry_id)
        look = self._look(entry_id)
        return BadEntry(entry_id, look.gap, self._flaw(entry_id, look), look.fields)

    def skip(self, bad: BadEntry, note: bytes, *, archived_end: int = 0) -> None:
        """Takes the entry out. The bytes of it are gone then.

        Args:
            note: see `notes`.
            archived_end: where cold's records end; no segment is cut below it.

        Raises:
            ConcurrentChangeError: others changed the entry, or kept changing the partition; nothing
                was skipped.
            UnknownTopicIdError: the topic was dropped.
        """
        digest = hashlib.sha1(b"\n".join(bad.fields)).hexdigest() if bad.fields else ""
        for _ in range(_ATTEMPTS):
            look = self._look(bad.entry_id)
            if (look.gap, look.fields) != (bad.gap, bad.fields):
                break
            if look.gap.end > max(look.gap.start, look.open_base):
                self._call("roll", bad.entry_id)
                failpoint("skip.after_roll")
                look = self._look(bad.entry_id)
            texts, cut = [text for text, _ in look.cut], [segment for _, segment in look.cut]
            parts = [part for one in cut for part in self._parts(one, bad.gap, archived_end)]
            failpoint("skip.before_skip")
            arguments = (*bad.gap, digest, note, len(cut), *texts, *parts)
            if self._call("skip", bad.entry_id, *arguments)[0] == b"OK":
                failpoint("skip.after_skip")
                return
        if self.notes().get(bad.entry_id) == note:
            return  # an answer was lost
        raise ConcurrentChangeError(
            f"others changed {self._topic_partition} while entry {bad.entry_id} was to be skipped; "
            "nothing was skipped. Try again",
            entry_id=bad.entry_id,
        )

    def note(self, name: str, note: bytes) -> None:
        """Keeps a note of something else of the partition that was skipped.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        self._call("note", name, note)

    def notes(self) -> dict[str, bytes]:
        """What was noted of all that was skipped, by the entry's id or another name."""
        key, server = self._notes_key, self._servers.for_key(self._notes_key)
        names = [name for name in server.call(("HKEYS", key))[0] if b"|" not in name]
        found = server.call(("HMGET", key, *names))[0] if names else []
        return {
            name.decode("utf-8", "replace"): note
            for name, note in zip(names, found, strict=True)
            if note is not None
        }

    def kept_by_older(self) -> list[str]:
        """The ids of entries of which an older version kept the bytes in Redis."""
        names = self._servers.for_key(self._notes_key).call(("HKEYS", self._notes_key))[0]
        ids = {name.partition(b"|")[0] for name in names if b"|" in name} - {b""}
        return sorted(one.decode("utf-8", "replace") for one in ids)

    def drop_kept_by_older(self) -> None:
        """Drops their bytes for good; their offsets stay gaps."""
        key, server = self._notes_key, self._servers.for_key(self._notes_key)
        names = [name for name in server.call(("HKEYS", key))[0] if b"|" in name]
        if names:
            server.call(("HDEL", key, *names))

    def drop_copy(self) -> None:
        """Drops the copy of the stream that a process left which died while it made one.

        Who runs that again would go on with it, so this is for who must know that no copy is left.
        """
        key = self._keys.partition(self._topic_partition).rebuilt
        self._servers.for_key(key).call(("UNLINK", key))

    # -- helpers ---------------------------------------------------------------------------------

    @property
    def _notes_key(self) -> str:
        return self._keys.partition(self._topic_partition).quarantine

    def _call(self, verb: str, entry_id: str, *arguments: Any) -> list[Any]:
        keys = self._keys.partition(self._topic_partition)
        while True:
            answer: list[Any] = call_script(
                self._servers,
                "skip",
                (*keys.all(), keys.quarantine, keys.rebuilt),
                [verb, str(self._topic_id), entry_id, *arguments],
            )
            if answer[0] != b"MORE":
                break
            failpoint("skip.after_part")
        if answer[0] == b"UNKNOWN_TOPIC_ID":
            check_topic_id(self._topic_partition, answer[1], self._topic_id)
        return answer

    def _look(self, entry_id: str) -> _Look:
        answer = self._call("look", entry_id)
        with foreign_if_illegible(answer, f"state of {self._topic_partition}, with its segments"):
            _, start, end, log_end, open_base, gaps, fields, cut = answer
            return _Look(
                OffsetRange(start, end),
                open_base,
                Declared(log_end, parse_gaps(gaps)),
                tuple(fields or ()),
                tuple((text, HotSegment(*map(int, text.split()))) for text in cut),
            )

    def _flaw(self, entry_id: str, look: _Look) -> str:
        """Why the entry may go.

        Raises:
            InvalidArgumentError, PolicyViolationError, NewerVersionError: it must stay.
        """
        if not look.fields:
            if look.gap.start == look.gap.end:
                raise InvalidArgumentError(
                    f"{self._topic_partition} has no entry {entry_id}, and lacks none there. "
                    "Errors, and `lakelog segments list --verify`, name the entries that are bad",
                    entry_id=entry_id,
                )
            return "no entry holds these offsets"
        try:
            found = EntryId.parse(entry_id)
            decode([(found, list(look.fields))])
        except CorruptRecordError as error:
            return error.message
        if look.declared.disowns(found):
            return "it lies in a declared gap or past the log end"
        if look.gap != (found.base_offset, found.end_offset):
            return "other entries speak for its offsets"
        raise PolicyViolationError(
            f"entry {entry_id} of {self._topic_partition} is sound and in its place; only entries "
            "that are not are skipped. To delete records, use `lakelog delete-records`",
            entry_id=entry_id,
        )

    def _parts(self, segment: HotSegment, gap: OffsetRange, archived_end: int) -> Iterator[str]:
        """What the gap leaves of a closed segment, each a segment of its own."""
        for start, end in (
            (segment.base_offset, min(segment.end_offset, max(gap.start, archived_end))),
            (max(gap.end, archived_end), segment.end_offset),
        ):
            if segment.base_offset <= start < end and not (start == gap.start and end == gap.end):
                yield segment_text(self._tallied(segment, start, end))

    def _tallied(self, segment: HotSegment, start: int, end: int) -> HotSegment:
        """The part [start, end) of a segment: bytes and timestamps of its entries."""
        size_bytes, times = 0, []
        for page in self._inspection.pages(self._topic_partition, self._topic_id, start):
            for entry in page.entries:
                if entry.base_offset is None or entry.base_offset < start or entry.format == "gap":
                    continue
                if entry.end_offset > end:
                    break
                size_bytes += entry.size_bytes
                times.append(entry.max_timestamp_ms)
            else:
                continue
            break
        # If some cannot be read, the whole segment's times do: they only keep more.
        known = all(time is not None for time in times)
        readable = [time for time in times if time is not None]
        return HotSegment(
            start,
            end,
            size_bytes,
            (readable or [NO_TIMESTAMP_MS])[0] if known else segment.first_timestamp_ms,
            max(readable, default=NO_TIMESTAMP_MS) if known else segment.max_timestamp_ms,
            segment.created_ms,
            segment.modified_ms,
        )


def _check_id(entry_id: str) -> None:
    try:
        EntryId.parse(entry_id)
    except ForeignEntryError as error:
        first, _, second = entry_id.partition("-")
        if not (first.isdigit() and second.isdigit()):
            raise InvalidArgumentError(
                f"{entry_id!r} is no entry's id: give it as errors and XRANGE show it, as 1999-100",
                entry_id=entry_id,
            ) from error

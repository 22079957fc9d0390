"""Entries moved aside, so that the rest of the partition is read and archived.

The bytes of such an entry lie in ``:quarantine``, as they were; its offsets become a declared gap
between two segments. Moving one aside takes one script; putting it back takes two, and in between
it is in both places: another release then finishes the job. Where the stream has to be written
anew, that is done before, by parts that nobody sees. See ``quarantine.lua``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..base.failpoints import failpoint
from ..base.json_text import parse_json
from ..codec import EntryId, decode
from ..codec.description import describe
from ..errors import (
    ConcurrentChangeError,
    CorruptRecordError,
    ForeignEntryError,
    InvalidArgumentError,
    PolicyViolationError,
)
from ..values.offsets import HotSegment, check_offset
from ..values.record import NO_TIMESTAMP_MS
from ..values.topic_partition import OffsetRange, TopicPartition
from .connection import Servers, call_script
from .declared import Declared, parse_gaps
from .fetch import check_topic_id
from .foreign import foreign_if_illegible
from .inspection import Inspection
from .keys import Keys
from .segment_text import segment_text

_ATTEMPTS = 20


class QuarantinedEntry(Struct, frozen=True):
    """One entry that is, or would be, moved aside."""

    topic_partition: TopicPartition
    entry_id: str
    gap: OffsetRange  # empty: other entries hold its offsets, or it names none
    reason: str
    who: str
    moved_at_ms: int
    fields: tuple[bytes, ...]  # names and values, as they were; empty: there was no such entry

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.fields))

    def records(self) -> pa.RecordBatch:
        """What it holds, as `RECORDS`, if it can be read after all.

        Raises:
            CorruptRecordError, ForeignEntryError: it cannot.
        """
        return decode([(EntryId.parse(self.entry_id), list(self.fields))])


class _Look(Struct, frozen=True):
    gap: OffsetRange
    log_end: int
    open_base: int
    declared: Declared
    fields: tuple[bytes, ...]  # empty: no such entry
    cut: tuple[tuple[bytes, HotSegment], ...]  # the closed segments that the gap cuts, as stored


class HotQuarantine:
    """Moves entries of one partition aside, lists them, and puts them back."""

    def __init__(
        self, servers: Servers, keys: Keys, topic_partition: TopicPartition, topic_id: UUID
    ) -> None:
        self._servers = servers
        self._keys = keys
        self._topic_partition = topic_partition
        self._topic_id = topic_id
        self._inspection = Inspection(servers, keys)

    def add(
        self,
        entry_id: str,
        reason: str,
        who: str,
        now_ms: int,
        *,
        archived_end: int = 0,
        dry_run: bool = False,
        whatever: bool = False,
    ) -> QuarantinedEntry:
        """Moves an entry aside. A missing one is given up: its offsets become a gap.

        Args:
            entry_id: as XRANGE and the errors show it, ``{last offset}-{record count}``.
            archived_end: where cold's records end; no segment is cut below it.
            dry_run: only say what would go.
            whatever: even if the entry is sound.

        Raises:
            InvalidArgumentError: not a stream id, or neither an entry nor a hole.
            PolicyViolationError: the entry is sound and in its place.
            ConcurrentChangeError: others kept changing the partition; nothing was moved.
            UnknownTopicIdError: the topic was dropped.
        """
        _check_id(entry_id)
        for _ in range(_ATTEMPTS):
            look = self._look(entry_id)
            flaw = "" if whatever else self._flaw(entry_id, look)
            moved = QuarantinedEntry(
                self._topic_partition, entry_id, look.gap, reason or flaw, who, now_ms, look.fields
            )
            if dry_run:
                return moved
            if look.gap.end > max(look.gap.start, look.open_base):
                self._call("roll", entry_id)
                failpoint("quarantine.after_roll")
                look = self._look(entry_id)
            texts, cut = [text for text, _ in look.cut], [segment for _, segment in look.cut]
            parts = [part for one in cut for part in self._parts(one, look.gap, archived_end)]
            failpoint("quarantine.before_move")
            answer = self._call("move", entry_id, *look.gap, _note(moved), len(cut), *texts, *parts)
            if answer[0] == b"OK":
                failpoint("quarantine.after_move")
                return moved
        raise self._changed(entry_id)

    def held(self) -> list[QuarantinedEntry]:
        """The entries in quarantine, by offset."""
        key = self._keys.partition(self._topic_partition).quarantine
        reply = self._servers.for_key(key).call(("HGETALL", key))[0]
        pairs = (
            reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
        )
        held = dict(pairs)
        found = []
        for name in held:
            if b"|" in name:
                continue
            what = f"note of an entry in quarantine, in field {name!r} of {key}"
            with foreign_if_illegible(held[name], what):
                note = parse_json(held[name])
                start, end = note["gap"]
                first, second = name.decode().split("-")
                entry = QuarantinedEntry(
                    self._topic_partition,
                    name.decode(),
                    OffsetRange(check_offset(start), check_offset(end)),
                    str(note["reason"]),
                    str(note["who"]),
                    int(note["moved_at_ms"]),
                    # A `give_up` that was cut short leaves the first of them.
                    tuple(
                        held[field]
                        for n in range(1, note["fields"] + 1)
                        if (field := name + b"|%d" % n) in held
                    ),
                )
                found.append(((int(first), int(second)), entry))
        return [entry for _, entry in sorted(found, key=lambda one: one[0])]

    def put_back(self, entry_id: str, now_ms: int, *, dry_run: bool = False) -> QuarantinedEntry:
        """Puts an entry back in its place, if it is sound; its bytes stay here until `forget`.

        Repair it first, field by field, in the key ``:quarantine``.

        Raises:
            InvalidArgumentError: no entry of that id is in quarantine.
            CorruptRecordError: it is still not what was written.
            PolicyViolationError: its place is taken, or was trimmed.
        """
        held = next((one for one in self.held() if one.entry_id == entry_id), None)
        if held is None:
            raise InvalidArgumentError(
                f"{self._topic_partition} has no entry {entry_id} in quarantine; `lakelog "
                "quarantine list` shows what it has",
                entry_id=entry_id,
            )
        found = EntryId.parse(entry_id)
        if held.gap != (found.base_offset, found.end_offset):
            raise PolicyViolationError(
                f"entry {entry_id} of {self._topic_partition} has no place to go back to: others "
                "speak for its offsets. Its bytes stay in quarantine",
                entry_id=entry_id,
            )
        records = decode([(found, list(held.fields))])
        times_ms = [
            time_us // 1000 for time_us in records.column("timestamp").cast("int64").to_pylist()
        ]
        segment = HotSegment(
            found.base_offset,
            found.end_offset,
            describe(list(held.fields)).size_bytes,
            max(times_ms),
            max(times_ms),
            now_ms,
            now_ms,
        )
        if dry_run:
            return held
        failpoint("quarantine.before_release")
        answer = self._call("release", entry_id, *held.gap, segment_text(segment))
        if answer[0] != b"OK":
            raise PolicyViolationError(
                f"entry {entry_id} of {self._topic_partition} cannot go back: its offsets were "
                "trimmed, or others speak for them. Its bytes stay in quarantine",
                entry_id=entry_id,
            )
        return held

    def forget(self, entry_id: str) -> None:
        """Drops what is kept of an entry, once it is back for good.

        Not before: half a transaction may be lost, and then its bytes with it.
        """
        self._call("forget", entry_id)

    def give_up(self, held: QuarantinedEntry, reason: str) -> None:
        """Drops an entry's bytes for good; its offsets stay a gap, and its note says why.

        Args:
            reason: instead of the one for which it was moved aside, which may show what it held.
        """
        left = replace(held, reason=reason, fields=())
        self._call("give_up", held.entry_id, _note(left))

    def drop_copy(self) -> None:
        """Drops the copy of the stream that a process left which died while it made one.

        Who runs that again would go on with it, so this is for who must know that no copy is left.
        """
        keys = self._keys.partition(self._topic_partition)
        self._servers.for_key(keys.rebuilt).call(("UNLINK", keys.rebuilt))

    def is_back(self, entry_id: str) -> bool:
        """Whether an entry that has bytes here is in the stream too: partly released."""
        return bool(self._look(entry_id).fields)

    # -- helpers ---------------------------------------------------------------------------------

    def _call(self, verb: str, entry_id: str, *arguments: Any) -> list[Any]:
        keys = self._keys.partition(self._topic_partition)
        while True:
            answer: list[Any] = call_script(
                self._servers,
                "quarantine",
                (*keys.all(), keys.quarantine, keys.rebuilt),
                [verb, str(self._topic_id), entry_id, *arguments],
            )
            if answer[0] != b"MORE":
                break
            failpoint("quarantine.after_part")
        if answer[0] == b"UNKNOWN_TOPIC_ID":
            check_topic_id(self._topic_partition, answer[1], self._topic_id)
        return answer

    def _look(self, entry_id: str) -> _Look:
        answer = self._call("look", entry_id)
        with foreign_if_illegible(answer, f"state of {self._topic_partition}, with its segments"):
            _, start, end, log_end, open_base, gaps, fields, cut = answer
            return _Look(
                OffsetRange(start, end),
                log_end,
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
            f"entry {entry_id} of {self._topic_partition} is sound and in its place; quarantine is "
            "for entries that are not. To delete records, use `lakelog delete-records`",
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

    def _changed(self, entry_id: str) -> ConcurrentChangeError:
        return ConcurrentChangeError(
            f"others kept changing {self._topic_partition} while entry {entry_id} was to be moved "
            "aside; nothing was moved. Try again",
            entry_id=entry_id,
        )


def _note(entry: QuarantinedEntry) -> str:
    return json.dumps(
        {
            "reason": entry.reason,
            "who": entry.who,
            "moved_at_ms": entry.moved_at_ms,
            "gap": [*entry.gap],
            "fields": len(entry.fields),
        }
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

"""What producers sent to a partition, call by call, and what the cold tier keeps of it.

Redis knows the last calls of each producer, and by them tells a repeat of work from new work. When
Redis is lost, or comes back without a tail that was archived, that is gone while the records are
not. So each commit that moves an archived end says what the producers had sent last below it, as
Kafka uploads a producer snapshot with each segment. A recovery puts it back. These rules hold:

1. The calls are read in one step with the log end that the archive goes up to. So a call whose
   records are archived is among them, and none that begins at or above the archived end is kept.
2. Of each producer the newest such call is kept, as in Kafka's snapshots. By its sequences and its
   checksum the calls before it are known to have been made, and what comes after it is appended.
3. Only calls with a checksum count: those of Spark's sink, whose work is repeated as a whole, by
   other processes and in other runs of the server; and those of Kafka's clients, which cannot be
   told that a server was lost, and send again what had no answer (`KAFKA` is their checksum). Any
   other producer lives in one process: its calls that were under way when Redis was lost are
   refused as unknown, and its next begins anew.
4. An archive that was told where to end may end within a call, or so far below the newest that
   Redis does not remember those around its end. Of such a producer the cold tier keeps that it is
   *cut*: how much of its work is archived is not known. If Redis is lost before the next archive,
   a repeat of that work is refused, neither doubled nor lost. What it does next is taken.
5. Each table says how many it keeps at most, the newest ones. A repeat of work that is not among
   them is appended again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .config import INT64_MAX

#: Sequences count up to 2^31 - 1, as Kafka's do, and begin again at 0.
MAX_SEQUENCES = 1 << 31

#: Of each producer, Redis remembers so many calls of its newest epoch.
REMEMBERED_CALLS = 5

#: In place of a checksum: how much of the producer's work is archived is not known. No checksum
#: equals it, so append.lua refuses whatever goes on in that epoch.
CUT = "cut"

#: In place of a checksum: a Kafka client sent it through a gateway.
KAFKA = "k"


class ProducerCall(Struct, frozen=True):
    """One call of a producer: who wrote which offsets."""

    producer_id: int
    epoch: int
    first_sequence: int
    last_sequence: int  # inclusive
    base_offset: int
    append_time_ms: int = -1  # -1 under CreateTime
    #: Hex digits, over the producer's records of this epoch up to and with these; empty: it sends
    #: none.
    checksum: str = ""

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.base_offset + (self.last_sequence - self.first_sequence) % MAX_SEQUENCES + 1

    def sequence(self, offset: int) -> int:
        """The sequence of the record at that offset."""
        return (self.first_sequence + offset - self.base_offset) % MAX_SEQUENCES


def last_calls(calls: Iterable[ProducerCall], end: int) -> tuple[ProducerCall, ...]:
    """The newest call below an offset of each producer with checksums, by offset.

    Args:
        calls: of each producer the last few, all of one epoch. At the log end the newest is enough.
        end: exclusive; where the archive ends.
    """
    by_producer: dict[int, list[ProducerCall]] = {}
    for call in calls:
        if call.checksum:
            by_producer.setdefault(call.producer_id, []).append(call)
    found = []
    for own in by_producer.values():
        oldest = min(own, key=lambda call: call.base_offset)
        below = [call for call in own if call.base_offset < end]
        newest = max(below, key=lambda call: call.base_offset, default=None)
        if newest is not None and newest.end_offset <= end:
            found.append(newest)
        elif newest is not None or oldest.first_sequence > 0:
            found.append(_cut(newest or oldest, end))
    return tuple(sorted(found, key=lambda call: call.base_offset))


def newest(calls: Iterable[ProducerCall], most: int) -> tuple[ProducerCall, ...]:
    """So many of the calls, those at the highest offsets, by offset."""
    ordered = sorted(calls, key=lambda call: call.base_offset)
    return tuple(ordered[max(0, len(ordered) - most) :])


def _cut(call: ProducerCall, end: int) -> ProducerCall:
    """Stands for what is not known of the producer's calls around the end.

    With all sequences, so that none goes on behind it.
    """
    return replace(
        call,
        first_sequence=0,
        last_sequence=MAX_SEQUENCES - 1,
        base_offset=end - 1,
        append_time_ms=-1,
        checksum=CUT,
    )


_NAMES = ProducerCall.__struct_fields__


def rows_of_calls(calls: Iterable[ProducerCall]) -> list[list[Any]]:
    return [[getattr(call, name) for name in _NAMES] for call in calls]


def calls_of_rows(rows: Iterable[Sequence[Any]]) -> tuple[ProducerCall, ...]:
    """Reads what `rows_of_calls` wrote.

    Raises:
        ValueError, TypeError: it is something else.
    """
    return tuple(_call(row) for row in rows)


def _call(row: Sequence[Any]) -> ProducerCall:
    *numbers, checksum = row
    if len(row) != len(_NAMES) or not all(map(_is_whole, numbers)):
        raise ValueError(f"{row!r:.120} is no call of a producer")
    if not isinstance(checksum, str) or not re.fullmatch(r"\w{1,16}", checksum, re.ASCII):
        raise ValueError(f"{checksum!r:.80} is no checksum")
    return ProducerCall(*row)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INT64_MAX

"""What a share consumer holds of one partition, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...groups.share.share_values import Acknowledgement, AcknowledgeType, AcquiredRange, Outcome


class _Held(Struct):
    start: int  # the offsets that are acknowledged with it: those before it hold no record
    end: int
    epoch: int
    said: AcknowledgeType | None = None
    is_renewed: bool = False


class HeldRecords:
    """Records that were handed out, and not yet settled."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}  # by offset, in order of acquisition

    def __len__(self) -> int:
        return len(self._held)

    def add(self, acquired: AcquiredRange, start: int, end: int, offsets: Sequence[int]) -> None:
        """Hand out the records at these offsets, all that [start, end) of the range has."""
        at = start
        for offset in offsets:
            self._held[offset] = _Held(at, offset + 1, acquired.epoch)
            at = offset + 1
        if offsets:
            self._held[offsets[-1]].end = end

    def say(self, offset: int, type_: AcknowledgeType) -> bool:
        """What became of a record; the last word counts. False if it is not held."""
        held = self._held.get(offset)
        if held is None:
            return False
        held.said = type_
        return True

    def unsaid(self) -> Iterator[int]:
        """The offsets of which nothing was said yet."""
        return (at for at, one in self._held.items() if one.said is None and not one.is_renewed)

    def say_the_rest(self, type_: AcknowledgeType) -> None:
        for held in self._held.values():
            if held.said is None:
                held.said = type_

    def take(self) -> list[Acknowledgement]:
        """What was said, in order of offsets; what was renewed is held on."""
        taken: list[Acknowledgement] = []
        for offset in sorted(self._held):
            held = self._held[offset]
            if held.said is None:
                continue
            outcome = Outcome.of(held.said)
            last = taken[-1] if taken else None
            if last and (last.end, last.epoch, last.outcome) == (held.start, held.epoch, outcome):
                taken[-1] = Acknowledgement(last.start, held.end, held.epoch, outcome)
            else:
                taken.append(Acknowledgement(held.start, held.end, held.epoch, outcome))
            if held.said is AcknowledgeType.RENEW:
                held.said, held.is_renewed = None, True
            else:
                del self._held[offset]
        return taken

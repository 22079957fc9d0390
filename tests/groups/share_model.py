"""What a share group does with the records of a partition: a plain one, record by record."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakelog.groups.settings import ShareGroupSettings
from lakelog.groups.share.share_values import Acknowledgement, Outcome, RangeState


@dataclass(frozen=True)
class Held:
    """One record."""

    state: RangeState
    count: int = 0
    owner: str | None = None
    deadline: int | None = None
    epoch: int = 0


ACKNOWLEDGED = Held(RangeState.ACKNOWLEDGED)
ARCHIVED = Held(RangeState.ARCHIVED)


class ShareModel:
    """One group in one partition of one creation of a topic."""

    def __init__(self, settings: ShareGroupSettings, begin: int) -> None:
        self.settings = settings
        self.epoch = 0
        self.start = self.end = begin
        self.records: dict[int, Held] = {}  # of [start, end)
        self.log_start = 0

    def acquire(
        self, now_ms: int, member_id: str, most: int, log_end: int
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Offset → delivery count of what is delivered, and of what is to be dead-lettered."""
        self._expire(now_ms)
        while self.end < self.log_start:
            self.records[self.end] = ARCHIVED
            self.end += 1
        is_full = len(self.ranges()) >= self.settings.partition_max_record_locks
        deadline = now_ms + self.settings.record_lock_duration_ms
        lock = {"owner": member_id, "deadline": deadline, "epoch": self.epoch + 1}
        given: dict[int, int] = {}
        dead: dict[int, int] = {}
        for offset in sorted(self.records):
            one = self.records[offset]
            if one.state is RangeState.AVAILABLE and len(given) < most:
                self.records[offset] = Held(RangeState.ACQUIRED, one.count + 1, **lock)
                given[offset] = one.count + 1
            elif one.state is RangeState.ARCHIVING and one.owner is None and len(dead) < most:
                self.records[offset] = Held(RangeState.ARCHIVING, one.count, **lock)
                dead[offset] = one.count
        while len(given) < most and not is_full and self.end < log_end:
            self.records[self.end] = Held(RangeState.ACQUIRED, 1, **lock)
            given[self.end] = 1
            self.end += 1
        if given or dead:
            self.epoch += 1
        self._advance()
        return given, dead

    def acknowledge(
        self, now_ms: int, member_id: str, said: list[Acknowledgement], log_end: int
    ) -> list[bool]:
        self._expire(now_ms)
        # All are checked against what held before the call, since no two speak of one offset.
        results = [self._take(now_ms, member_id, one, log_end) for one in said]
        self._advance()
        return results

    def _take(self, now_ms: int, member_id: str, one: Acknowledgement, log_end: int) -> bool:
        if one.outcome is Outcome.GAP:
            if one.start <= self.end:
                for offset in range(self.end, min(one.end, log_end)):
                    self.records[offset] = ACKNOWLEDGED
                    self.end = offset + 1
            for offset in range(one.start, one.end):
                held = self.records.get(offset)
                if held and (held.state is RangeState.AVAILABLE or held.owner == member_id):
                    self.records[offset] = ACKNOWLEDGED
            return True
        wanted = {
            Outcome.DEAD: {RangeState.ARCHIVING},
            Outcome.UNREAD: {RangeState.ACQUIRED, RangeState.ARCHIVING},
        }.get(one.outcome, {RangeState.ACQUIRED})
        found = [self.records.get(offset) for offset in range(one.start, one.end)]
        for held in found:
            if held is None or (held.owner, held.epoch) != (member_id, one.epoch):
                return False
            if held.state not in wanted:
                return False
        for offset, held in zip(range(one.start, one.end), found, strict=True):
            assert held is not None
            self.records[offset] = self._became(now_ms, held, one.outcome)
        return True

    def _became(self, now_ms: int, held: Held, outcome: Outcome) -> Held:
        match outcome:
            case Outcome.ACCEPT:
                return ACKNOWLEDGED
            case Outcome.RELEASE:
                return self._given_back(held.count)
            case Outcome.REJECT:
                return self._undelivered(held.count)
            case Outcome.RENEW:
                return replace(held, deadline=now_ms + self.settings.record_lock_duration_ms)
            case Outcome.UNREAD:
                if held.state is RangeState.ARCHIVING:
                    return self._undelivered(held.count)
                return Held(RangeState.AVAILABLE, held.count - 1)
        return ARCHIVED

    def _undelivered(self, count: int) -> Held:
        if self.settings.dead_letter_topic is None:
            return ARCHIVED
        return Held(RangeState.ARCHIVING, count)

    def _given_back(self, count: int) -> Held:
        if count >= self.settings.delivery_count_limit:
            return self._undelivered(count)
        return Held(RangeState.AVAILABLE, count)

    def _expire(self, now_ms: int) -> None:
        for offset, one in self.records.items():
            if one.deadline is not None and one.deadline <= now_ms:
                is_held = one.state is RangeState.ACQUIRED
                became = self._given_back if is_held else self._undelivered
                one = self.records[offset] = became(one.count)
            is_free = one.owner is None and one.state is not RangeState.ACKNOWLEDGED
            if offset < self.log_start and is_free:
                self.records[offset] = ARCHIVED

    def _advance(self) -> None:
        done = (RangeState.ACKNOWLEDGED, RangeState.ARCHIVED)
        while self.start < self.end and self.records[self.start].state in done:
            del self.records[self.start]
            self.start += 1

    def ranges(self) -> list[tuple[int, int, Held]]:
        """Neighbours that are alike, together."""
        found: list[tuple[int, int, Held]] = []
        for offset in sorted(self.records):
            if found and found[-1][2] == self.records[offset]:
                found[-1] = (found[-1][0], offset + 1, found[-1][2])
            else:
                found.append((offset, offset + 1, self.records[offset]))
        return found

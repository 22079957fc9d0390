"""Producing under a quota as a rule of the state machine: no more is held than may be."""

from __future__ import annotations

from lakelog.errors import MissingExtraError
from lakelog.hot.append import AppendResult
from lakelog.testing import strategies
from lakelog.testing.model import require
from lakelog.testing.strategies import Batch
from lakelog.values.config import QUOTA_HOT_BYTES

from .harness import PARTITIONS, TOPIC, any_records, producers
from .log_rules import LogRules

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error


class QuotaRules(LogRules):
    """Adds a quota of hot bytes, for a while, to what happens to a log."""

    hot_quota: int

    @precondition(any_records)
    @rule(
        producer=producers,
        batches=st.lists(strategies.batches(), min_size=1, max_size=4),
        room=st.integers(0, 2000),
        archived=st.booleans(),
    )
    def produce_under_a_quota(
        self, producer: int, batches: list[Batch], room: int, archived: bool
    ) -> None:
        """All partitions together hold no more than they may, and no less than they could."""
        if self.writer_kind != "calls" or any(m.run_id != self.run_id for m in self.models):
            return
        self.hot_quota = self._held() + room
        self._bound(self.hot_quota)
        for partition in (*range(PARTITIONS), 0):
            self.clock.advance(1001)  # so that what is free by now is counted
            for batch in batches:
                self._append_bounded(partition, producer, batch)
            if archived and partition == 0:
                self._archive(self.archiver, None)
        self._bound(None)
        self._open()
        self._cannot_be_lost()  # else a quota of then would come back

    def _append_bounded(self, partition: int, producer: int, batch: Batch) -> None:
        (sent,) = self._calls(partition, producer, [batch])
        size_bytes = sent.call.batch.size_bytes
        held = self._held()
        self.clock.advance(1001)
        if held + size_bytes > self.hot_quota:
            (answer,) = self.hot.append_all([sent.call])
            require(
                not isinstance(answer, AppendResult),
                f"{size_bytes} bytes were appended beside {held}, and {self.hot_quota} are allowed",
            )
            self._new_epoch(partition, producer)
            return
        if not self._send(partition, [sent]):  # the reservation was used up: told from a refusal
            self._recover_as_producer(partition)
            self._new_epoch(partition, producer)

    def _bound(self, hot_bytes: int | None) -> None:
        self.hot.topics().set_defaults({QUOTA_HOT_BYTES: hot_bytes})
        self.topic = self.hot.topics().get(TOPIC)

    def _held(self) -> int:
        return sum(seen.held_bytes for seen in self._observe().values())

"""Histories of a log in memory that keeps the rules, and of the same log with one rule broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import assume, given
from hypothesis import strategies as st

from .history import (
    Consumption,
    Creation,
    FinalLog,
    History,
    Kind,
    Outcome,
    Partition,
    Seen,
    Send,
    Span,
    TotalLoss,
)
from .oracle import judge

HERE = Partition("id", 0)
KEYS = ("a", "b", None)
TOLD = (Outcome.ACKED, Outcome.REFUSED, Outcome.UNKNOWN)  # what a producer is told
STEPS = ("send", "send", "consume", "lose", "lose redis", "archive", "work", "clean")


@dataclass
class LogInMemory:
    """One partition, its producers, and one consumer, by the rules."""

    kind: Kind
    history: History = field(default_factory=History)
    records: dict[int, Send] = field(default_factory=dict)
    start: int = 0
    cleaned_end: int = 0  # cleanup sees only what no tail can take any more
    archived_end: int = 0  # likewise, nor a loss of Redis
    end: int = 0
    gaps: list[Span] = field(default_factory=list)
    now_s: float = 0.0
    sequences: dict[int, int] = field(default_factory=dict)
    position: int = 0
    work: list[Send] = field(default_factory=list)  # rows of the task that is not finished yet
    done: dict[str, int] = field(default_factory=dict)  # offsets of its rows, also cleaned up ones

    def __post_init__(self) -> None:
        self.history.creations.append(Creation("t", HERE.topic_id, self.kind, 0.0))
        self.history.consumptions.append(Consumption("c", HERE, 0))

    def send(self, producer: int, outcome: Outcome, key: str | None, *, is_written: bool) -> None:
        self.now_s += 1
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + 1
        send = Send(f"p{producer}.1.{sequence}", "t", key, self.now_s, False, outcome)
        self.history.sends.append(send)
        if outcome is Outcome.ACKED or (outcome is Outcome.UNKNOWN and is_written):
            self.records[self.end] = send
            if outcome is Outcome.ACKED:
                send.acked_s, send.partition, send.offset = self.now_s + 0.5, 0, self.end
            self.end += 1

    def consume(self, count: int) -> None:
        one = self.history.consumptions[0]
        there = [at for at in sorted(self.records) if at >= max(self.position, self.start)]
        for offset in there[:count]:
            one.seen.append(Seen(offset, self.records[offset].payload))
            self.position = offset + 1

    def lose_tail(self, count: int) -> None:
        """What was appended last goes; a gap says so."""
        self.now_s += 1
        self.history.restarts += 1
        floor = max([self.start, self.archived_end, *(int(gap.end) for gap in self.gaps)])
        lost = [at for at in sorted(self.records) if at >= floor][-count:]
        first = lost[0] if lost else self.end
        self.done = {row: at for row, at in self.done.items() if at < first}
        sent_s = [self.records.pop(offset).sent_s for offset in lost]
        self.history.losses.append(Span(min(sent_s, default=self.now_s), self.now_s))
        self.gaps.append(Span(first, self.end + 100))
        self.end += 100

    def archive(self) -> None:
        self.archived_end = self.end

    def lose_redis(self) -> None:
        """What is not archived goes; a gap says so, and none of those before it does any more."""
        self.now_s += 1
        archived = {HERE: self.archived_end} if self.archived_end else {}
        span = Span(self.now_s, self.now_s + 1)
        self.history.total_losses.append(TotalLoss(span, archived, {HERE: tuple(self.gaps)}))
        self.history.restarts += 1
        self.now_s += 1
        self.records = {at: one for at, one in self.records.items() if at < self.archived_end}
        self.done = {row: at for row, at in self.done.items() if at < self.archived_end}
        self.gaps = [Span(max(self.archived_end, self.start), self.end + 100)]
        self.end += 100

    def go_on_working(self, rows: int, appended: int, *, is_finished: bool) -> None:
        """A task is begun, or tried again: what it has not done is appended."""
        self.now_s += 1
        if not self.work:
            first = self.sequences.get(9, 0)
            self.sequences[9] = first + rows
            self.work = [
                Send(f"p9.0.{n}", "t", KEYS[n % 3], self.now_s, False, is_repeated=True)
                for n in range(first, first + rows)
            ]
            self.history.sends += self.work
        left = [send for send in self.work if send.payload not in self.done]
        for send in left if is_finished else left[:appended]:
            self.records[self.end] = send
            self.done[send.payload] = self.end
            self.end += 1
        if is_finished:
            for send in self.work:
                send.outcome, send.asked_s, send.acked_s = Outcome.APPENDED, self.now_s, self.now_s
            self.work = []

    def clean(self, count: int) -> None:
        """What the topic's policy allows."""
        self.cleaned_end = self.archived_end = self.end
        if self.kind is Kind.RETAINED:
            self.start = min(self.start + count, self.end)
            self.records = {at: one for at, one in self.records.items() if at >= self.start}
        elif self.kind is Kind.COMPACTED:
            last = {one.key: at for at, one in sorted(self.records.items())}
            old = [at for at, one in sorted(self.records.items()) if at < last[one.key]]
            for offset in old[:count]:
                del self.records[offset]

    def told(self) -> History:
        reading = [Seen(at, one.payload) for at, one in sorted(self.records.items())]
        keys = {one.payload: one.key for one in self.records.values()}
        self.history.finals = [
            FinalLog(
                "t",
                HERE,
                self.start,
                self.end,
                self.gaps,
                {"one": list(reading), "two": list(reading)},
                keys,
            )
        ]
        return self.history


@st.composite
def logs(draw: st.DrawFn, kinds: Sequence[Kind] = tuple(Kind)) -> LogInMemory:
    log = LogInMemory(draw(st.sampled_from(kinds)))
    for _ in range(draw(st.integers(1, 30))):
        match draw(st.sampled_from(STEPS)):
            case "send":
                log.send(
                    draw(st.integers(0, 2)),
                    draw(st.sampled_from(TOLD)),
                    draw(st.sampled_from(KEYS)),
                    is_written=draw(st.booleans()),
                )
            case "consume":
                log.consume(draw(st.integers(1, 5)))
            case "lose":
                log.lose_tail(draw(st.integers(0, 3)))
            case "lose redis":
                log.lose_redis()
            case "archive":
                log.archive()
            case "work":
                rows, appended = draw(st.integers(1, 4)), draw(st.integers(0, 4))
                log.go_on_working(rows, appended, is_finished=draw(st.booleans()))
            case "clean":
                log.clean(draw(st.integers(1, 5)))
    return log


def names(history: History) -> set[str]:
    return {anomaly.name for anomaly in judge(history)}


@given(logs())
def test_a_log_that_keeps_the_rules_is_never_accused(log: LogInMemory) -> None:
    assert judge(log.told()) == []


@given(logs(), st.data())
def test_a_record_that_vanishes_is_missed(log: LogInMemory, data: st.DataObject) -> None:
    last = {one.key: at for at, one in sorted(log.records.items())}
    acked = [
        at
        for at, one in log.records.items()
        if one.outcome is Outcome.ACKED and (log.kind is not Kind.COMPACTED or last[one.key] == at)
    ]
    assume(acked)
    del log.records[data.draw(st.sampled_from(acked))]
    assert "lost write" in names(log.told())


@given(logs([Kind.PLAIN]), st.data())
def test_work_that_vanishes_is_missed(log: LogInMemory, data: st.DataObject) -> None:
    log.go_on_working(3, 0, is_finished=True)
    finished = [at for at, one in log.records.items() if one.acked_s == log.now_s]
    del log.records[data.draw(st.sampled_from(finished))]
    assert "lost write" in names(log.told())


@given(logs(), st.data())
def test_a_record_that_is_there_twice_is_noticed(log: LogInMemory, data: st.DataObject) -> None:
    assume(log.records)
    log.records[log.end] = log.records[data.draw(st.sampled_from(sorted(log.records)))]
    log.end += 1
    assert "duplicate" in names(log.told())


@given(logs(), st.data())
def test_two_records_in_each_others_place_are_noticed(
    log: LogInMemory, data: st.DataObject
) -> None:
    pairs = [
        (a, b)
        for a, one in log.records.items()
        for b, other in log.records.items()
        if a < b and one.session == other.session and one.sequence < other.sequence
    ]
    assume(pairs)
    a, b = data.draw(st.sampled_from(pairs))
    log.records[a], log.records[b] = log.records[b], log.records[a]
    assert "reorder" in names(log.told())


@given(logs())
def test_an_offset_that_is_given_again_is_noticed(log: LogInMemory) -> None:
    """As if the tail was lost and nobody had declared it."""
    log.send(0, Outcome.ACKED, "b", is_written=True)
    log.end -= 1
    log.send(0, Outcome.ACKED, "a", is_written=True)
    assert "offset reuse" in names(log.told())


@given(logs(), st.data())
def test_a_consumer_that_leaves_one_out_is_noticed(log: LogInMemory, data: st.DataObject) -> None:
    seen = log.history.consumptions[0].seen
    kept = [one for one in seen[:-1] if one.offset in log.records]
    assume(kept)
    seen.remove(data.draw(st.sampled_from(kept)))
    assert "skipped offset" in names(log.told())


@given(logs(), st.data())
def test_a_consumer_that_goes_back_is_noticed(log: LogInMemory, data: st.DataObject) -> None:
    seen = log.history.consumptions[0].seen
    assume(seen)
    seen.append(data.draw(st.sampled_from(seen)))
    assert "position going back" in names(log.told())

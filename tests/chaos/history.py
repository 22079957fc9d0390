"""What happened in a round, as its processes and readers tell it: values, out of journals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple


class Outcome(Enum):
    """What a producer was told about a record."""

    ACKED = "acked"
    REFUSED = "refused"  # surely not written
    UNKNOWN = "unknown"  # told so, or killed before it was told anything
    APPENDED = "appended"  # by work that is repeated until it is done; nobody was told where


class Kind(Enum):
    """What may happen to a topic's records."""

    PLAIN = "plain"  # nothing: each stays for good
    COMPACTED = "compacted"  # the last record of each key stays
    RETAINED = "retained"  # the first may go, all up to some offset


@dataclass(slots=True)
class Send:
    """One record that a producer sent."""

    payload: str  # unique: producer.session.sequence
    topic: str
    key: str | None
    sent_s: float  # before it was handed over
    is_durable: bool  # acked only once the death of any one server cannot take it
    outcome: Outcome = Outcome.UNKNOWN
    acked_s: float = 0.0
    partition: int = -1
    offset: int = -1
    is_repeated: bool = False  # by work that is done again, also after a loss of what it had done
    asked_s: float = 0.0  # of such work: when the call that found it appended was begun

    @property
    def session(self) -> str:
        """Who sent it: one session sends one record after the other."""
        return self.payload.rpartition(".")[0]

    @property
    def sequence(self) -> int:
        return int(self.payload.rpartition(".")[2])


class Partition(NamedTuple):
    """A partition of one creation of a topic."""

    topic_id: str
    number: int


class Seen(NamedTuple):
    """A record that somebody read."""

    offset: int
    payload: str


class Span(NamedTuple):
    """Offsets ``[start, end)``, or seconds from start to end."""

    start: float
    end: float


@dataclass(slots=True)
class Consumption:
    """What one consumer read of a partition, over all its sessions, in order."""

    consumer: str
    partition: Partition
    start: int  # where it began
    seen: list[Seen] = field(default_factory=list)
    position: int = -1  # in the end; -1: it was not asked


@dataclass(frozen=True, slots=True)
class GroupRead:
    """What a member of the group was handed of a partition by one poll."""

    member: str  # another one each time that it joins anew
    generation_id: int
    partition: Partition
    offsets: list[int]
    payloads: list[str]
    at_s: float  # before anything of it was committed
    since_s: float | None = None  # when the member was given the partition, if that is known


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """A commit that was answered."""

    member: str
    generation_id: int
    partition: Partition
    offset: int
    asked_s: float
    acked_s: float


@dataclass(slots=True)
class FinalLog:
    """A partition in the end, as one reader after the other found it."""

    topic: str
    partition: Partition
    log_start: int
    log_end: int
    gaps: list[Span]  # declared
    readings: dict[str, list[Seen]]  # by reader; all must agree
    keys: dict[str, str | None] = field(default_factory=dict)  # payload → key, of what is there


@dataclass(slots=True)
class Creation:
    """One life of a topic."""

    topic: str
    topic_id: str
    kind: Kind
    created_s: float  # when it was there at the latest
    is_last: bool = True


@dataclass(frozen=True, slots=True)
class Erasure:
    """A key whose records were erased, or were about to be."""

    topic_id: str
    key: str
    began_s: float
    ended_s: float | None = None  # None: it never said so, and may have erased any
    ends: Mapping[int, int] = field(default_factory=dict)  # by partition, below which none is left


@dataclass(frozen=True, slots=True)
class TotalLoss:
    """A Redis that was lost altogether, and whose topics were made again out of their tables."""

    span: Span  # seconds, from before it was lost to when it was back
    archived: Mapping[Partition, int]  # what lay below was archived before; nothing else is known
    gaps: Mapping[Partition, Sequence[Span]] = field(default_factory=dict)  # that it had declared


@dataclass(slots=True)
class History:
    """All that is known of a round."""

    sends: list[Send] = field(default_factory=list)
    creations: list[Creation] = field(default_factory=list)
    consumptions: list[Consumption] = field(default_factory=list)
    group_reads: list[GroupRead] = field(default_factory=list)
    group_commits: list[GroupCommit] = field(default_factory=list)
    # What the group has committed in the end; None: there is none.
    group_end: Mapping[Partition, int] | None = None
    finals: list[FinalLog] = field(default_factory=list)
    unreadable: set[Partition] = field(default_factory=set)  # in the end; told among the troubles
    losses: list[Span] = field(default_factory=list)
    # Times within which what was appended but is not durable may be lost, if a gap declares it.
    total_losses: list[TotalLoss] = field(default_factory=list)
    erasures: list[Erasure] = field(default_factory=list)
    restarts: int = 0  # of servers, after which a gap may be declared
    troubles: list[tuple[str, str]] = field(default_factory=list)  # anomaly and detail, as noticed


def sends_of(producer: str, lines: Iterable[list[Any]]) -> list[Send]:
    """The sends of one producer, out of its journal (see `producing`)."""
    sends: dict[str, Send] = {}
    session, is_durable = 0, False
    for kind, at_s, *fields in lines:
        match kind:
            case "session":
                session, is_durable = fields
            case "intent":
                topic, records = fields
                for sequence, key in records:
                    payload = f"{producer}.{session}.{sequence}"
                    sends[payload] = Send(payload, topic, key, at_s, is_durable)
            case "ack":
                sequence, partition, offset = fields
                send = sends[f"{producer}.{session}.{sequence}"]
                send.outcome, send.acked_s = Outcome.ACKED, at_s
                send.partition, send.offset = partition, offset
            case "refused":
                for sequence in fields[0]:
                    sends[f"{producer}.{session}.{sequence}"].outcome = Outcome.REFUSED
    return list(sends.values())


def tasks_of(sink: str, lines: Iterable[list[Any]]) -> list[Send]:
    """The rows of one sink's tasks, out of its journal (see `sinking`)."""
    sends: dict[int, Send] = {}
    for kind, at_s, *fields in lines:
        match kind:
            case "task":
                topic, first, keys = fields
                for sequence, key in enumerate(keys, first):
                    payload = f"{sink}.0.{sequence}"
                    send = Send(payload, topic, key, at_s, False, is_repeated=True)
                    sends.setdefault(sequence, send)
            case "confirmed":
                asked_s, first, count = fields
                for sequence in range(first, first + count):
                    send = sends[sequence]
                    send.outcome, send.asked_s, send.acked_s = Outcome.APPENDED, asked_s, at_s
    return list(sends.values())


def erasures_of(lines: Iterable[list[Any]]) -> list[Erasure]:
    """What one janitor erased, out of its journal (see `keeping`)."""
    found: list[Erasure] = []
    for kind, at_s, *fields in lines:
        if kind == "erasing":
            found.append(Erasure(*fields, at_s))
        elif kind == "erased":
            ends = {int(number): end for number, end in fields[0].items()}
            found[-1] = replace(found[-1], ended_s=at_s, ends=ends)
    return found


def consumptions_of(consumer: str, lines: Iterable[list[Any]]) -> list[Consumption]:
    """What one consumer read, out of its journal (see `consuming`)."""
    found: dict[Partition, Consumption] = {}
    for kind, _, *fields in lines:
        match kind:
            case "begin":
                topic_id, number, offset = fields
                where = Partition(topic_id, number)
                found.setdefault(where, Consumption(consumer, where, offset))
            case "seen":
                topic_id, number, offsets, payloads = fields
                found[Partition(topic_id, number)].seen += map(Seen, offsets, payloads)
            case "drained":
                for topic_id, number, position in fields[0]:
                    found[Partition(topic_id, number)].position = position
    return list(found.values())


def group_reads_of(lines: Iterable[list[Any]]) -> list[GroupRead]:
    """What one process handled as a member, out of its journal (see `grouping`)."""
    return [
        GroupRead(member, generation_id, Partition(topic_id, number), offsets, payloads, at_s)
        for kind, at_s, *fields in lines
        if kind == "handled"
        for member, generation_id, topic_id, number, offsets, payloads in [fields]
    ]


def group_commits_of(lines: Iterable[list[Any]]) -> list[GroupCommit]:
    """What one process committed as a member, out of its journal (see `grouping`)."""
    return [
        GroupCommit(member, generation_id, Partition(topic_id, number), offset, asked_s, at_s)
        for kind, at_s, *fields in lines
        if kind == "committed"
        for member, generation_id, asked_s, places in [fields]
        for topic_id, number, offset in places
    ]


def positions(consumptions: Iterable[Consumption]) -> Mapping[Partition, int]:
    """Where a consumer goes on that knows only its journal."""
    return {
        one.partition: one.seen[-1].offset + 1 if one.seen else one.start for one in consumptions
    }

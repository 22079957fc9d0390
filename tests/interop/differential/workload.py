"""What is done to a log, drawn from a seed: the same steps for every log that is compared.

Times are distances from the moment the workload begins, so that a recorded one can be run later
against a clock that is set back. Segments roll by the records' times alone (``segment.ms``): sizes
in bytes mean different things on different storage.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

NO_TIMESTAMP = None


@dataclass(frozen=True, slots=True)
class Row:
    """One record to be appended."""

    age_ms: int | None  # before the workload's begin; below 0 is in the future; None: no timestamp
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Append:
    """One produced batch."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Raises the log start."""

    before_offset: int


@dataclass(frozen=True, slots=True)
class Retain:
    """Deletes old segments by a limit that holds for this step alone.

    It cuts at an age of some hours and 50 minutes, and records are some hours and up to 40 minutes
    old, so that clocks and seconds decide nothing.
    """

    retention_ms: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Cleans every closed segment."""


@dataclass(frozen=True, slots=True)
class Move:
    """Moves records between the tiers, or their files: nothing that a reader may see."""

    how: str  # archive, archive some, optimize, reopen


@dataclass(frozen=True, slots=True)
class Numbered(Append):
    """A batch of an idempotent producer that says itself how it counts, rightly or wrongly."""

    producer: int
    epoch: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Commit:
    """What the topic's group has read."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class ForgetGroup:
    """Deletes the topic's group."""


@dataclass(frozen=True, slots=True)
class Alter:
    """Sets or unsets (None) a setting of the topic, if it may have that value."""

    name: str
    value: str | None


Step = Append | DeleteRecords | Retain | Compact | Move | Commit | ForgetGroup | Alter


@dataclass(frozen=True, slots=True)
class Workload:
    """A topic's settings, and what is done to it. ``looks`` after each step but `Move`."""

    seed: int
    kind: str  # delete, compact or compact,delete
    settings: dict[str, str]
    tiered: bool
    steps: tuple[Step, ...] = field(repr=False)
    for_clients: bool = field(default=False, repr=False)  # has steps that only clients can take


def draw(
    seed: int,
    kinds: tuple[str, ...] = ("delete", "delete", "compact", "both"),
    *,
    for_clients: bool = False,
) -> Workload:
    """The workload of a seed.

    Args:
        for_clients: between its steps are others that only a client of Kafka can take.
    """
    rng = random.Random(seed)
    kind = {"both": "compact,delete"}.get(chosen := rng.choice(kinds), chosen)
    compacted = "compact" in kind
    settings = {
        "cleanup.policy": kind,
        "segment.ms": str(rng.choice((1, 3, 8)) * HOUR_MS),
        "delete.retention.ms": rng.choice(("0", str(24 * HOUR_MS))),
    }
    if rng.random() < 0.2:
        settings["message.timestamp.before.max.ms"] = str(60 * HOUR_MS + 50 * MINUTE_MS)
    tiered = compacted or rng.random() < 0.8
    steps: list[Step] = []
    end_offset = 0  # if nothing is refused; a little too far is a case too
    for _ in range(rng.randint(6, 14)):
        # Which neighbours a compaction makes one segment is each log's own affair, so
        # what retention deletes after it may be more here and less there.
        retains = "delete" in kind and not any(isinstance(step, Compact) for step in steps)
        for step in _some(rng, kind, retains, tiered, end_offset):
            steps.append(step)
            end_offset += len(step.rows) if isinstance(step, Append) else 0
    if for_clients:
        steps = list(_with_steps_of_clients(random.Random(f"{seed} clients"), kind, steps))
    return Workload(seed, kind, settings, tiered, tuple(steps), for_clients)


def _some(
    rng: random.Random, kind: str, retains: bool, tiered: bool, end_offset: int
) -> Iterator[Step]:
    choice = rng.random()
    if choice < 0.55 or end_offset == 0:
        for _ in range(rng.randint(1, 4)):
            yield _append(rng, kind)
    elif choice < 0.68:
        if tiered:
            # What is deleted before it is archived has no say in what retention deletes later: cold
            # never knew how young it was. Kafka's segment is as young as its youngest record ever.
            yield Move("archive")
        yield DeleteRecords(rng.randint(0, end_offset + (rng.random() < 0.2)))
    elif choice < 0.80 and retains:
        yield Retain(rng.choice((2, 10, 20, 40, 70)) * HOUR_MS + 50 * MINUTE_MS)
    elif choice < 0.92 and "compact" in kind:
        yield Compact()
    elif tiered:
        yield Move(rng.choice(("archive", "archive some", "optimize", "reopen")))
    else:
        yield Move("reopen")


def _append(rng: random.Random, kind: str) -> Append:
    count = rng.choice((1, 1, 2, 3, 5, 20, 40))
    begin_ms = rng.randint(0, 72) * HOUR_MS
    shape = rng.choice(("still", "forward", "wild"))
    rows = []
    for number in range(count):
        if shape == "wild":
            begin_ms = rng.randint(0, 72) * HOUR_MS
        elif shape == "forward" and rng.random() < 0.3:
            begin_ms = max(0, begin_ms - HOUR_MS)
        age_ms: int | None = begin_ms + rng.randint(0, 40 * MINUTE_MS)
        if rng.random() < 0.02:
            age_ms = NO_TIMESTAMP
        elif rng.random() < 0.004:
            age_ms = -2 * HOUR_MS  # too far ahead
        rows.append(Row(age_ms, _key(rng, kind), _value(rng, kind, number), _headers(rng)))
    return Append(tuple(rows))


def _key(rng: random.Random, kind: str) -> bytes | None:
    keyless = 0.004 if "compact" in kind else 0.3
    if rng.random() < keyless:
        return None
    return rng.choice((b"", b"\x00\xff", *(b"key %d" % number for number in range(8))))


def _value(rng: random.Random, kind: str, number: int) -> bytes | None:
    if rng.random() < (0.2 if "compact" in kind else 0.05):
        return None
    return rng.choice((b"", b"%d of %d" % (number, rng.getrandbits(30)), rng.randbytes(40)))


def _headers(rng: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    names = ("a", "a", "", "Jämtland")
    return tuple(
        (rng.choice(names), rng.choice((None, b"", b"x", b"\xff")))
        for _ in range(rng.choice((0, 0, 0, 1, 3)))
    )


#: Those that change nothing that is asked but of the settings themselves; illegal ones too.
_ALTERED = (
    *(("compression.type", one) for one in ("gzip", "snappy", "lz4", "zstd", "brotli", None)),
    *(("max.message.bytes", one) for one in ("2000000", "-1", None)),
    *(("message.timestamp.after.max.ms", one) for one in (str(3 * HOUR_MS), "x", None)),
    *(("cleanup.policy", one) for one in ("none of these",)),
    *(("no.such.setting", one) for one in ("1", None)),
)


def _with_steps_of_clients(rng: random.Random, kind: str, steps: list[Step]) -> Iterator[Step]:
    producers = (_Counting(), _Counting())
    for step in steps:
        # What is archived before records are deleted is all there is: see `_some`.
        for _ in range(0 if isinstance(step, DeleteRecords) else rng.choice((0, 1, 1, 2))):
            choice = rng.random()
            if choice < 0.6:
                number = rng.randrange(len(producers))
                yield producers[number].draw(rng, kind, number)
            elif choice < 0.8:
                yield Commit(rng.randint(0, 100), rng.choice(("", "here", "Jämtland")))
            elif choice < 0.85:
                yield ForgetGroup()
            else:
                yield Alter(*rng.choice(_ALTERED))
        yield step


class _Counting:
    """Batches of one producer, most of them counted as they should be."""

    def __init__(self) -> None:
        self._epoch = self._next = 0
        self._sent: list[Numbered] = []

    def draw(self, rng: random.Random, kind: str, number: int) -> Numbered:
        choice = rng.random()
        if choice < 0.3 and self._sent:
            return rng.choice(self._sent[-7:])  # of the last five of an epoch a broker knows
        # As old as none else: a broker rolls a segment for a batch that it then refuses, or has.
        rows = tuple(
            replace(row, age_ms=row.age_ms and 73 * HOUR_MS + rng.randint(0, 40 * MINUTE_MS))
            for row in _append(rng, kind).rows[:5]
        )
        if choice < 0.4:
            return Numbered(rows, number, self._epoch, self._next + rng.randint(1, 3))
        if choice < 0.45 and self._epoch:
            return Numbered(rows, number, self._epoch - 1, self._next)
        if choice < 0.5:
            return Numbered(rows, number, self._epoch + 1, 3)
        if choice < 0.6:
            self._epoch, self._next = self._epoch + 1, 0
        one = Numbered(rows, number, self._epoch, self._next)
        self._next += len(rows)
        self._sent.append(one)
        return one

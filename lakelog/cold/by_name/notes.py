"""The notes in the commits of a table by name, and the index and registers made from them.

Only Spark may touch such a table, and of a table's log Spark shows only one text for each commit,
``userMetadata``. So each commit of lakelog carries a note there, as JSON:

| member    |                                                                                    |
|-----------|------------------------------------------------------------------------------------|
| lakelog   | 1: the format                                                                      |
| operation | what it did, for people: ``archive``, ``compact``, … (see `Change.operation`)      |
| topic     | the topic id                                                                       |
| commit    | a random name, so that a lost reply is settled by looking for it                   |
| kind      | ``archive`` (moves archived ends) or ``cleanup`` (everything else)                 |
| epoch     | the number of its kind's commits, with this one; also Delta's txn version          |
| on        | the table version that it was planned on                                           |
| registers | the registers it moves: name → partition → value                                   |
| added     | slices it adds                                                                     |
| known     | what was looked up of earlier slices; counts only for those still there            |
| gone      | keys of slices it removes                                                          |
| producers | by partition whose archived end it moves: the last calls below it                  |
| base      | now and then: all of epochs, registers, slices and producers as of version ``on``  |

There are two kinds because commits of one kind conflict with each other: an archiver that commits
once a minute must not starve a compaction that runs for an hour. Notes of different kinds add up in
either order.

A **slice** is to such a table what a `SegmentFile` is to a table at a path: a range of offsets of
one segment. Only Spark knows which Parquet files hold its rows, and no OPTIMIZE changes a slice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from ...base.json_text import parse_json
from ...errors import ContradictionError
from ...values.config import INT64_MAX
from ...values.producer_calls import ProducerCall, calls_of_rows, rows_of_calls
from ..change import HotRange, Rewrite
from ..registers import REGISTER_NAMES, ArchivedEnd, Register
from ..segment import COLUMNS, SegmentIndex, file_name, sources_digest

ARCHIVE, CLEANUP = "archive", "cleanup"

#: Every so many commits of lakelog hold a base. One of 10,000 slices takes about 1 MB.
BASE_INTERVAL = 50

#: Commits that a first look takes; more if they do not reach back to a base.
FIRST_ROWS = BASE_INTERVAL + 10

#: The kind of a slice that a foreign commit left: all rows of a segment, as they were found.
FOUND = "rows"

#: How many producers' calls the partitions of a table keep together, at about 80 bytes each: each
#: archive commit has those of the partitions it moves, and a first look reads fifty commits.
MOST_CALLS = 4_000

#: Operations of foreign commits that move no row into or out of a table.
HARMLESS = frozenset(
    {
        "ADD COLUMNS",
        "ADD CONSTRAINT",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "CLUSTER BY",
        "COMPUTE STATS",
        "CREATE TABLE",
        "DROP COLUMNS",
        "DROP CONSTRAINT",
        "OPTIMIZE",
        "RENAME COLUMN",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "VACUUM END",
        "VACUUM START",
    }
)

#: Operations that leave a table's properties as they were.
_ROWS_ALONE = frozenset({"WRITE", "OPTIMIZE", "VACUUM START", "VACUUM END", "COMPUTE STATS"})

#: What is raised when JSON is not as lakelog writes it.
ILLEGIBLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)

_FORMAT = 1
_REGISTERS = {name: register for register, name in REGISTER_NAMES.items()}

#: By partition, what its producers had sent last below its archived end.
Calls = Mapping[int, Sequence[ProducerCall]]


class Slice(Struct, frozen=True):
    """A range of offsets of one segment, and what is known of its rows."""

    partition: int
    segment: int  # the segment's base offset
    kind: str  # archive, clean or FOUND
    start_offset: int
    end_offset: int  # exclusive
    tag: str  # 16 hex digits; a clean slice has the digest of its sources
    version: int  # the first table version that has it; -1: not committed yet
    modified_ms: int
    records: int = -1  # this and what follows: -1 until looked up
    first: int = -1
    last: int = -1
    min_timestamp_ms: int = -1
    max_timestamp_ms: int = -1
    size_bytes: int = -1

    @classmethod
    def of(cls, add: HotRange | Rewrite, now_ms: int) -> Slice:
        """What a hot range or a rewrite becomes."""
        common = (add.topic_partition.partition, add.segment)
        edges = (add.start_offset, add.end_offset)
        if isinstance(add, HotRange):
            return cls(*common, "archive", *edges, uuid4().hex[:16], -1, now_ms)
        tag = sources_digest(file.path for file in add.files)
        modified_ms = max(file.modified_ms for file in add.files)
        return cls(*common, "clean", *edges, tag, -1, modified_ms)

    @property
    def key(self) -> str:
        """Identifies the slice within its table."""
        if self.kind == FOUND:
            return f"{self.partition}/{FOUND}-{self.segment}"
        return f"{self.partition}/{self.tag}"

    @property
    def is_known(self) -> bool:
        return self.size_bytes >= 0

    @property
    def is_assumed(self) -> bool:
        """Whether its rows could not be read. No note holds what is only assumed."""
        return self.records > 0 and not self.size_bytes

    def assumed(self) -> Slice:
        """The slice as if it had a record at each offset, none newer than itself."""
        first = max(self.start_offset, min(self.segment, self.end_offset - 1))
        return replace(
            self,
            records=self.end_offset - first,
            first=first,
            last=self.end_offset - 1,
            max_timestamp_ms=self.modified_ms,
            size_bytes=0,
        )

    @property
    def path(self) -> str:
        """Stands for it in a `SegmentFile`; names no file. `version_of_path` reads it."""
        folder = f"partition={self.partition}/segment={self.segment}"
        if self.kind == FOUND:
            return f"{folder}/{FOUND}-{self.start_offset}-{self.end_offset}-{self.version:016x}"
        unique = f"{self.tag}{self.version:016x}"
        return f"{folder}/{file_name(self.kind, self.start_offset, self.end_offset, unique)}"


def version_of_path(path: str) -> int:
    """The table version that first had the slice."""
    return int(path.removesuffix(".parquet")[-16:], 16)


class Note(Struct, frozen=True):
    """What one commit of lakelog says."""

    commit: str
    kind: str
    epoch: int
    on: int
    registers: Mapping[Register, int] = field(default_factory=dict)
    added: Sequence[Slice] = ()
    known: Sequence[Slice] = ()
    gone: Sequence[str] = ()
    base: State | None = None
    calls: Calls = field(default_factory=dict)
    operation: str = ""

    def to_json(self, topic_id: UUID) -> str:
        """As ``userMetadata``."""
        content: dict[str, Any] = {
            "lakelog": _FORMAT,
            "operation": self.operation,
            "topic": str(topic_id),
            "commit": self.commit,
            "kind": self.kind,
            "epoch": self.epoch,
            "on": self.on,
            "registers": registers_to_json(self.registers),
            "added": _rows(self.added),
            "known": _rows(self.known),
            "gone": list(self.gone),
            "producers": _calls_to_json(self.calls),
        }
        if self.base is not None:
            content["base"] = {
                "epochs": dict(self.base.epochs),
                "registers": registers_to_json(self.base.registers),
                "slices": _rows(self.base.slices.values()),
                "producers": _calls_to_json(self.base.calls),
            }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | None, topic_id: UUID) -> Note | None:
        """The note in ``userMetadata``; None if lakelog did not write it for this topic.

        Raises:
            ContradictionError: it says that lakelog wrote it, and cannot be read.
        """
        if not text or '"lakelog"' not in text:
            return None
        try:
            content = parse_json(text)
        except ValueError:
            return None
        if not isinstance(content, dict) or content.get("topic") != str(topic_id):
            return None
        try:
            if content.get("lakelog") != _FORMAT:
                raise ValueError(f"its format is {content.get('lakelog')!r}, not {_FORMAT}")
            return cls._of(content)
        except ILLEGIBLE as error:
            raise ContradictionError(
                f"a commit's userMetadata is a note of lakelog on topic {topic_id} that cannot be "
                f"read ({error!r}): {text[:80]!r}. If a newer lakelog wrote it, update this one; "
                "if somebody wrote it by hand, RESTORE the table to the version before it"
            ) from error

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Note:
        base = content.get("base")
        return cls(
            _text(content["commit"]),
            _text(content["kind"]),
            _whole(content["epoch"]),
            _whole(content["on"]),
            registers_of_json(content["registers"]),
            _slices(content["added"]),
            _slices(content["known"]),
            [_text(key) for key in content["gone"]],
            None
            if base is None
            else State(
                _whole(content["on"]),
                {_text(kind): _whole(epoch) for kind, epoch in base["epochs"].items()},
                registers_of_json(base["registers"]),
                {one.key: one for one in _slices(base["slices"])},
                _calls_of_json(base.get("producers", {})),
            ),
            _calls_of_json(content.get("producers", {})),  # an older lakelog notes none
            _text(content.get("operation", "")),  # nor this
        )


class Commit(Struct, frozen=True):
    """One version of the table."""

    version: int
    time_ms: int
    operation: str
    note: Note | None  # None: not lakelog's
    metrics: dict[str, str]

    @property
    def is_strange(self) -> bool:
        """Whether somebody else may have moved rows."""
        return self.note is None and self.operation not in HARMLESS

    @property
    def moves_rows_alone(self) -> bool:
        return self.operation in _ROWS_ALONE


def is_enough(commits: Sequence[Commit], since: int) -> bool:
    """Whether no older commits are needed: see `Note.base`."""
    oldest = commits[-1].version
    if since >= 0:
        return oldest <= since + 1
    bases = [c.note.base.version for c in commits if c.note and c.note.base]
    return bool(bases) and oldest <= max(bases) + 1


class State(Struct, frozen=True, eq=False):
    """What the notes up to a version add up to."""

    version: int = -1
    epochs: Mapping[str, int] = field(default_factory=dict)  # by kind
    registers: Mapping[Register, int] = field(default_factory=dict)
    slices: Mapping[str, Slice] = field(default_factory=dict)
    calls: Calls = field(default_factory=dict)

    def after(self, version: int, notes: Iterable[tuple[int, Note]]) -> State:
        """The state with later notes, by version. Notes up to its own version are in it already."""
        epochs, registers, slices = dict(self.epochs), dict(self.registers), dict(self.slices)
        calls = dict(self.calls)
        for at, note in sorted(notes, key=lambda one: one[0]):
            if at <= self.version:
                continue
            epochs[note.kind] = note.epoch
            registers.update(note.registers)
            for register in note.registers:
                if isinstance(register, ArchivedEnd):
                    calls[register.partition] = note.calls.get(register.partition, ())
            for key in note.gone:
                slices.pop(key, None)
            for known in note.known:
                if known.key in slices:
                    slices[known.key] = known
            for added in note.added:
                version_of = at if added.version < 0 else added.version
                slices[added.key] = replace(added, version=version_of)
        return State(version, epochs, registers, slices, calls)

    def index(self) -> SegmentIndex:
        """The slices as an index; each of them must be known."""
        columns = [
            (
                one.partition,
                one.segment,
                one.path,
                one.size_bytes,
                one.records,
                one.start_offset,
                one.end_offset,
                one.min_timestamp_ms,
                one.max_timestamp_ms,
                one.modified_ms,
                one.first,
                one.last,
                one.kind != FOUND,
            )
            for one in self.slices.values()
        ]
        arrays = list(zip(*columns, strict=True)) or [() for _ in COLUMNS]
        return SegmentIndex(
            pa.Table.from_arrays(
                [pa.array(array, kind.type) for array, kind in zip(arrays, COLUMNS, strict=True)],
                schema=COLUMNS,
            )
        )


def registers_to_json(registers: Mapping[Register, int]) -> dict[str, dict[str, int]]:
    """Name → partition → value."""
    content: dict[str, dict[str, int]] = {}
    for register, value in registers.items():
        of_name = content.setdefault(REGISTER_NAMES[type(register)], {})
        of_name[str(register.partition)] = value
    return content


def registers_of_json(content: Mapping[str, Mapping[str, int]]) -> dict[Register, int]:
    """Reads what `registers_to_json` wrote."""
    return {
        _REGISTERS[name](_partition(partition)): _whole(value)
        for name, values in content.items()
        for partition, value in values.items()
    }


def copy_to_json(state: State) -> str:
    """The registers and calls of a state, for a property of the table."""
    content = {
        "version": state.version,
        "registers": registers_to_json(state.registers),
        "producers": _calls_to_json(state.calls),
    }
    return json.dumps(content, separators=(",", ":"))


def parse_copy(text: str) -> State:
    """Reads what `copy_to_json` wrote.

    Raises:
        ContradictionError: it cannot be read.
    """
    try:
        content = parse_json(text)
        return State(
            _whole(content["version"]),
            registers=registers_of_json(content["registers"]),
            calls=_calls_of_json(content.get("producers", {})),
        )
    except ILLEGIBLE as error:
        raise ContradictionError(
            f"a copy of lakelog's registers in a table's properties cannot be read ({error!r}): "
            f"{text[:80]!r}. Somebody changed it; set it to what the registers were"
        ) from error


def _calls_to_json(calls: Calls) -> dict[str, list[list[Any]]]:
    return {str(partition): rows_of_calls(of_one) for partition, of_one in calls.items() if of_one}


def _calls_of_json(content: Mapping[str, Any]) -> dict[int, tuple[ProducerCall, ...]]:
    return {_partition(partition): calls_of_rows(rows) for partition, rows in content.items()}


def _rows(slices: Iterable[Slice]) -> list[list[Any]]:
    names = Slice.__struct_fields__
    return [[getattr(one, name) for name in names] for one in slices]


def _slices(rows: Iterable[Sequence[Any]]) -> list[Slice]:
    slices = []
    for row in rows:
        fields = dict(zip(Slice.__struct_fields__, row, strict=True))
        for name, value in fields.items():
            _text(value) if name in ("kind", "tag") else _whole(value)
        slices.append(Slice(**fields))
    return slices


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > INT64_MAX:
        raise ValueError(f"{value!r:.80} is no number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is no text")
    return value


def _partition(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError(f"{text!r:.80} is no partition")
    return int(text)

"""The manifest of an export: what is in it, by which every file of it is checked.

``manifest.json`` is written last, so an export without one is unfinished. It is one JSON object:

| member   | holds                                                                              |
|----------|------------------------------------------------------------------------------------|
| sha256   | of ``export`` as compact JSON with sorted keys                                      |
| export   | the format, who wrote it and when, and the topics; see `_topic_to_json`             |

Paths in it are relative to their topic's folder, ``{topic}/{topic_id}``, where its Delta table is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NoReturn
from uuid import UUID

from msgspec import Meta, Struct, convert, to_builtins
from msgspec.structs import astuple

from ...base.json_text import parse_json
from ...cold.properties import mirrored_properties, mirrored_topic, table_properties
from ...cold.registers import ArchivedEnd, CleanedEnd, ErasedEnd, LogStart, Register
from ...errors import CorruptRecordError, LakelogError, NewerVersionError
from ...groups.recorded_offset import GroupType, RecordedOffset
from ...values.format_version import newer
from ...values.producer_calls import ProducerCall, calls_of_rows, rows_of_calls
from ...values.record import MAX_OFFSET, OffsetAndMetadata
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange

MANIFEST = "manifest.json"
FORMAT = 1

#: A larger one would have tens of millions of files.
MOST_MANIFEST_BYTES = 4 * 1024**3

_NAME = r"[A-Za-z0-9_-][A-Za-z0-9_.=-]*"
_DATA = rf"partition=(0|[1-9][0-9]{{0,4}})/segment=(0|[1-9][0-9]{{0,15}})/{_NAME}\.parquet"

#: Numbers and texts that a manifest may have. `\Z`, for `$` lets a line end in.
_Offset = Annotated[int, Meta(ge=0, le=MAX_OFFSET)]
_Size = Annotated[int, Meta(ge=0, lt=2**62)]
_Time = Annotated[int, Meta(ge=0, lt=2**62)]
_Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_DataPath = Annotated[str, Meta(pattern=rf"^{_DATA}\Z", max_length=1000)]
_Path = Annotated[
    str,
    Meta(pattern=rf"^({_DATA}|(_delta_log|_quarantine)(/{_NAME}){{1,4}})\Z", max_length=1000),
]
_Partition = Annotated[str, Meta(pattern=r"^(0|[1-9][0-9]{0,4})\Z")]  # as a member's name


class _Row(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A value that a manifest has as a list."""


class ExportedFile(_Row, frozen=True):
    """A file as it is in an export."""

    path: _Path  # below the topic's folder
    size_bytes: _Size
    sha256: _Sha256


class DataFile(_Row, frozen=True):
    """A file of the table, and what Delta's log says of it."""

    path: _DataPath
    size_bytes: _Size
    sha256: _Sha256
    modified_ms: Annotated[int, Meta(gt=-(2**62), lt=2**62)]
    stats: str  # JSON, as Delta has it

    @property
    def file(self) -> ExportedFile:
        return ExportedFile(self.path, self.size_bytes, self.sha256)

    @property
    def partition(self) -> int:
        return int(self._numbers[1])

    @property
    def segment(self) -> int:
        return int(self._numbers[2])

    @property
    def _numbers(self) -> re.Match[str]:
        found = re.fullmatch(_DATA, self.path)
        assert found is not None  # checked when it was read
        return found


class ExportedPartition(_Row, frozen=True):
    """Where a partition stood. All of [log_start, archived_end) is in the export's table."""

    log_start: _Offset
    archived_end: _Offset
    cleaned_end: _Offset
    erased_end: _Offset
    log_end: _Offset  # above archived_end only by a gap

    def registers(self, partition: int) -> dict[Register, int]:
        """Those that its table has, but for what is reserved."""
        return {
            ArchivedEnd(partition): self.archived_end,
            LogStart(partition): self.log_start,
            CleanedEnd(partition): self.cleaned_end,
            ErasedEnd(partition): self.erased_end,
        }

    def __post_init__(self) -> None:
        if max(self.log_start, self.archived_end) > self.log_end:
            raise ValueError(f"{astuple(self)}: the log ends before what is archived of it")


class ExportedTopic(Struct, frozen=True):
    """One topic of an export."""

    topic: Topic
    partitions: tuple[ExportedPartition, ...]
    files: tuple[DataFile, ...]
    beside: tuple[ExportedFile, ...]  # Delta's log; of older exports, what lay in quarantine
    calls: Mapping[int, Sequence[ProducerCall]]  # what producers had sent last, by partition
    groups: tuple[RecordedOffset, ...]  # what groups had committed
    # Offsets that were skipped after an unclean stop, of what is archived, by partition.
    gaps: Mapping[int, Sequence[OffsetRange]] = {}

    @property
    def folder(self) -> str:
        return f"{self.topic.name}/{self.topic.topic_id}"

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.all_files())

    @property
    def records(self) -> int:
        return sum(int(parse_json(one.stats).get("numRecords", 0)) for one in self.files)

    def all_files(self) -> list[ExportedFile]:
        return [*(one.file for one in self.files), *self.beside]


class Manifest(Struct, frozen=True):
    """What an export holds."""

    export_id: UUID
    exported_ms: int
    lakelog: str  # the version that wrote it
    topics: tuple[ExportedTopic, ...]

    def to_json(self) -> bytes:
        """The text of ``manifest.json``."""
        rows = [_topic_row(one) for one in self.topics]
        said = _Export(FORMAT, self.export_id, self.exported_ms, self.lakelog, rows)
        text = _canonical(to_builtins(said))
        digest = hashlib.sha256(text.encode()).hexdigest()
        return f'{{"sha256":"{digest}",\n"export":{text}}}\n'.encode()

    @classmethod
    def parse(cls, content: bytes, where: str) -> Manifest:
        """What `to_json` wrote.

        Args:
            where: the export, for the message.

        Raises:
            NewerVersionError: a newer lakelog wrote it.
            CorruptRecordError: it is not what was written.
        """
        try:
            said = parse_json(content)
            export = said["export"]
            written = export["format"]
            if not isinstance(written, int) or written > FORMAT:
                raise newer(f"the export {where}", f"format {str(written)[:40]}", path=where)
            if hashlib.sha256(_canonical(export).encode()).hexdigest() != said["sha256"]:
                raise ValueError("its sha256 is another one")
            found = convert(export, _Export)
            topics = tuple(_topic(row) for row in found.topics)
            _check_distinct(one.topic.name for one in topics)
            return cls(found.export_id, found.exported_ms, found.lakelog, topics)
        except NewerVersionError as error:
            raise error.changed(path=where) from None
        except (ValueError, KeyError, TypeError, LakelogError) as error:  # msgspec's are the first
            raise CorruptRecordError(
                f"{where}/{MANIFEST} is not the manifest that was written: {error}. Nothing was "
                "changed; export again, or take another copy of the export",
                path=where,
            ) from error


def refuse(where: str, what: str) -> NoReturn:
    """Raises the error about an export that is not what was written.

    Args:
        what: a sentence without its full stop.
    """
    raise CorruptRecordError(
        f"the export {where} is not what was written: {what}. Nothing was changed; take another "
        "copy of it, or export again",
        path=where,
    )


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class _GroupRow(_Row, frozen=True):
    """What a group had committed of a partition."""

    group_id: Annotated[str, Meta(max_length=10_000)]
    group_type: GroupType
    protocol_type: str
    partition: int
    offset: _Offset
    metadata: str
    leader_epoch: Annotated[int, Meta(ge=-1, lt=2**62)]
    committed_ms: _Time | None


class _TopicRow(Struct, frozen=True, omit_defaults=True):
    """A topic, as a manifest has it."""

    properties: dict[str, str]  # as its table has them: name, id, settings, partitions, keyspace
    partitions: Annotated[list[ExportedPartition], Meta(min_length=1, max_length=10_000)]
    files: list[DataFile]
    beside: list[ExportedFile]
    producers: dict[_Partition, list[list[Any]]]
    groups: list[_GroupRow]
    gaps: dict[_Partition, list[tuple[_Offset, _Offset]]] = {}  # older versions know of none


class _Export(Struct, frozen=True):
    """The member ``export``."""

    format: int
    export_id: UUID
    exported_ms: _Time
    lakelog: str
    topics: list[_TopicRow]


def _topic_row(one: ExportedTopic) -> _TopicRow:
    return _TopicRow(
        table_properties(one.topic),
        list(one.partitions),
        list(one.files),
        list(one.beside),
        {str(number): rows_of_calls(calls) for number, calls in one.calls.items()},
        [_group_row(offset) for offset in one.groups],
        {str(number): list(of_one) for number, of_one in one.gaps.items()},
    )


def _topic(row: _TopicRow) -> ExportedTopic:
    """The topic, whose parts fit each other.

    Raises:
        ValueError, LakelogError: they do not.
    """
    topic, partitions = mirrored_topic(row.properties), tuple(row.partitions)
    missing = mirrored_properties(topic).items() - row.properties.items()
    if missing:
        raise ValueError(f"the properties of {topic.name} contradict each other in {min(missing)}")
    if len(partitions) != topic.partitions:
        raise ValueError(
            f"{topic.name} has {topic.partitions} partitions, and {len(partitions)} are described"
        )
    _check_distinct([*(one.path for one in row.files), *(one.path for one in row.beside)])
    numbers = {*map(int, (*row.producers, *row.gaps)), *(one.partition for one in row.files)}
    if beyond := [number for number in numbers if number >= topic.partitions]:
        raise ValueError(f"{topic.name} has no partition {beyond[0]}")
    calls = {int(key): calls_of_rows(rows) for key, rows in row.producers.items()}
    for number, of_one in calls.items():
        ends = partitions[number].archived_end
        if any(not 0 <= call.base_offset < ends for call in of_one):
            raise ValueError(f"a producer's call of {topic.name}-{number} is not archived")
    groups = tuple(_recorded(topic, one) for one in row.groups)
    for one in groups:
        number, offset = one.topic_partition.partition, one.committed.offset
        if offset > partitions[number].log_end:
            raise ValueError(
                f"group {one.group_id!r} is at {offset} of {one.topic_partition}, which ends at "
                f"{partitions[number].log_end}"
            )
    return ExportedTopic(
        topic,
        partitions,
        tuple(row.files),
        tuple(row.beside),
        calls,
        groups,
        {int(key): _gaps(of_one) for key, of_one in row.gaps.items()},
    )


def _gaps(found: Sequence[tuple[int, int]]) -> tuple[OffsetRange, ...]:
    """Ascending, apart.

    Raises:
        ValueError: they are not.
    """
    edges = [edge for one in found for edge in one]
    if sorted(set(edges)) != edges:
        raise ValueError(f"{found} are no gaps")
    return tuple(OffsetRange(*one) for one in found)


def _group_row(one: RecordedOffset) -> _GroupRow:
    return _GroupRow(
        *(one.group_id, one.group_type, one.protocol_type, one.topic_partition.partition),
        *one.committed,
        one.committed_ms,
    )


def _recorded(topic: Topic, row: _GroupRow) -> RecordedOffset:
    return RecordedOffset(
        row.group_id,
        row.group_type,
        row.protocol_type,
        topic.partition(row.partition),
        topic.topic_id,
        OffsetAndMetadata(row.offset, row.metadata, row.leader_epoch),
        row.committed_ms,
    )


def _check_distinct(names: Iterable[str]) -> None:
    """Checks that no two are the same.

    Raises:
        ValueError: two are.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"it has {name!r} twice")
        seen.add(name)

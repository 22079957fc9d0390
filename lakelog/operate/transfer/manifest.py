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
from typing import Any, NoReturn
from uuid import UUID

from msgspec import Struct
from msgspec.structs import astuple

from ...base.json_text import parse_json
from ...cold.call_rows import calls_of_rows, rows_of_calls
from ...cold.registers import ArchivedEnd, CleanedEnd, ErasedEnd, LogStart, Register
from ...cold.schema import mirrored_properties, mirrored_topic, table_properties
from ...errors import CorruptExportError, LakelogError, NewerVersionError
from ...groups.recorded_offset import GroupType, RecordedOffset
from ...values.format_version import newer
from ...values.producer_calls import ProducerCall
from ...values.record import MAX_OFFSET, OffsetAndMetadata
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange, TopicPartition

MANIFEST = "manifest.json"
FORMAT = 1

#: A larger one would have tens of millions of files.
MOST_MANIFEST_BYTES = 4 * 1024**3

_MOST_BYTES = 2**62
_DATA = re.compile(
    r"partition=(0|[1-9]\d{0,4})/segment=(0|[1-9]\d{0,15})/[\w-][\w.=-]*\.parquet", re.ASCII
)
_BESIDE = re.compile(r"(_delta_log|_quarantine)(/[\w-][\w.=-]*){1,4}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ExportedFile(Struct, frozen=True):
    """A file as it is in an export."""

    path: str  # below the topic's folder
    size_bytes: int
    sha256: str


class DataFile(Struct, frozen=True):
    """A file of the table, and what Delta's log says of it."""

    file: ExportedFile
    modified_ms: int
    stats: str  # JSON, as Delta has it

    @property
    def partition(self) -> int:
        return int(self._numbers[1])

    @property
    def segment(self) -> int:
        return int(self._numbers[2])

    @property
    def _numbers(self) -> re.Match[str]:
        found = _DATA.fullmatch(self.file.path)
        assert found is not None  # checked when it was read
        return found


class ExportedPartition(Struct, frozen=True):
    """Where a partition stood. All of [log_start, archived_end) is in the export's table."""

    log_start: int
    archived_end: int
    cleaned_end: int
    erased_end: int
    log_end: int  # above archived_end only by a gap

    def registers(self, partition: int) -> dict[Register, int]:
        """Those that its table has, but for what is reserved."""
        return {
            ArchivedEnd(partition): self.archived_end,
            LogStart(partition): self.log_start,
            CleanedEnd(partition): self.cleaned_end,
            ErasedEnd(partition): self.erased_end,
        }

    def __post_init__(self) -> None:
        numbers = astuple(self)
        if not all(0 <= number <= MAX_OFFSET for number in numbers):
            raise ValueError(f"{numbers} are not all offsets")
        if max(self.log_start, self.archived_end) > self.log_end:
            raise ValueError(f"{numbers}: the log ends before what is archived of it")


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
        said = {
            "format": FORMAT,
            "export_id": str(self.export_id),
            "exported_ms": self.exported_ms,
            "lakelog": self.lakelog,
            "topics": [_topic_to_json(one) for one in self.topics],
        }
        text = _canonical(said)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return f'{{"sha256":"{digest}",\n"export":{text}}}\n'.encode()

    @classmethod
    def parse(cls, content: bytes, where: str) -> Manifest:
        """What `to_json` wrote.

        Args:
            where: the export, for the message.

        Raises:
            NewerVersionError: a newer lakelog wrote it.
            CorruptExportError: it is not what was written.
        """
        try:
            said = parse_json(content)
            export = said["export"]
            written = export["format"]
            if not _is_whole(written) or written > FORMAT:
                raise newer(f"the export {where}", f"format {str(written)[:40]}", path=where)
            if hashlib.sha256(_canonical(export).encode()).hexdigest() != said["sha256"]:
                raise ValueError("its sha256 is another one")
            return cls(
                UUID(export["export_id"]),
                _whole(export["exported_ms"]),
                _text(export["lakelog"]),
                _distinct(_topic_from_json(one) for one in _list(export["topics"])),
            )
        except NewerVersionError as error:
            raise error.changed(path=where) from None
        except (
            ValueError,  # of this module, of uuid, and InvalidArgumentError
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            OverflowError,
            LakelogError,
        ) as error:
            raise CorruptExportError(
                f"{where}/{MANIFEST} is not the manifest that was written: {error}. Nothing was "
                "changed; export again, or take another copy of the export",
                path=where,
            ) from error


def refuse(where: str, what: str) -> NoReturn:
    """Raises the error about an export that is not what was written.

    Args:
        what: a sentence without its full stop.
    """
    raise CorruptExportError(
        f"the export {where} is not what was written: {what}. Nothing was changed; take another "
        "copy of it, or export again",
        path=where,
    )


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _topic_to_json(one: ExportedTopic) -> dict[str, Any]:
    return {
        # As its table has them: name, id, settings, partitions, generation, keyspace.
        "properties": table_properties(one.topic),
        "partitions": [list(astuple(one_partition)) for one_partition in one.partitions],
        "files": [[*_file_to_json(f.file), f.modified_ms, f.stats] for f in one.files],
        "beside": [_file_to_json(file) for file in one.beside],
        "producers": {str(number): rows_of_calls(calls) for number, calls in one.calls.items()},
        "groups": [_offset_to_json(offset) for offset in one.groups],
        # Left out where there are none, as by those who do not know of them.
        **(
            {"gaps": {str(n): [*map(list, of_one)] for n, of_one in one.gaps.items()}}
            if one.gaps
            else {}
        ),
    }


def _topic_from_json(said: Mapping[str, Any]) -> ExportedTopic:
    properties = _object(said["properties"])
    if not all(isinstance(value, str) for value in properties.values()):
        raise ValueError("a property is not text")
    topic = mirrored_topic(properties)
    missing = mirrored_properties(topic).items() - properties.items()
    if missing:
        raise ValueError(f"the properties of {topic.name} contradict each other in {min(missing)}")
    partitions = tuple(
        ExportedPartition(*map(_whole, _list(numbers, 5))) for numbers in _list(said["partitions"])
    )
    if not 1 <= topic.partitions <= 10_000 or len(partitions) != topic.partitions:
        raise ValueError(
            f"{topic.name} has {topic.partitions} partitions, and {len(partitions)} are described"
        )
    files = tuple(_data_file(*_list(row, 5)) for row in _list(said["files"]))
    beside = tuple(_file(_BESIDE, *_list(row, 3)) for row in _list(said["beside"]))
    _distinct(one.path for one in [*(f.file for f in files), *beside])
    beyond = [one.file.path for one in files if one.partition >= topic.partitions]
    if beyond:
        raise ValueError(f"{topic.name} has no partition of {beyond[0]}")
    producers = _object(said["producers"])
    calls = {_number(key): calls_of_rows(_list(rows)) for key, rows in producers.items()}
    for number, of_one in calls.items():
        ends = partitions[number].archived_end
        if any(not 0 <= call.base_offset < ends for call in of_one):
            raise ValueError(f"a producer's call of {topic.name}-{number} is not archived")
    groups = tuple(_offset(topic, _list(row, 8)) for row in _list(said["groups"]))
    for one in groups:
        number, offset = one.topic_partition.partition, one.committed.offset
        if offset > partitions[number].log_end:
            raise ValueError(
                f"group {one.group_id!r} is at {offset} of {one.topic_partition}, which ends at "
                f"{partitions[number].log_end}"
            )
    gaps = {_number(key): _gaps(of_one) for key, of_one in _object(said.get("gaps", {})).items()}
    if any(number >= topic.partitions for number in gaps):
        raise ValueError(f"{topic.name} has gaps in partitions that it has not")
    return ExportedTopic(topic, partitions, files, beside, calls, groups, gaps)


def _gaps(said: Any) -> tuple[OffsetRange, ...]:
    """Ascending, apart.

    Raises:
        ValueError: they are not.
    """
    gaps = [OffsetRange(*map(_whole, _list(one, 2))) for one in _list(said)]
    edges = [edge for one in gaps for edge in one]
    if sorted(set(edges)) != edges or any(edge > MAX_OFFSET for edge in edges):
        raise ValueError(f"{gaps} are no gaps")
    return tuple(gaps)


def _file_to_json(file: ExportedFile) -> list[Any]:
    return [file.path, file.size_bytes, file.sha256]


def _data_file(path: str, size_bytes: int, sha256: str, modified_ms: int, stats: str) -> DataFile:
    file = _file(_DATA, path, size_bytes, sha256)
    if not _is_whole(modified_ms) or not -(2**62) < modified_ms < 2**62:
        raise ValueError(f"{path} was modified at {modified_ms!r}")
    return DataFile(file, modified_ms, _text(stats))


def _file(legal: re.Pattern[str], path: str, size_bytes: int, sha256: str) -> ExportedFile:
    if not isinstance(path, str) or len(path) > 1000 or not legal.fullmatch(path):
        raise ValueError(f"{path!r:.200} is no path of a file of an export")
    if not _is_whole(size_bytes) or not 0 <= size_bytes < _MOST_BYTES:
        raise ValueError(f"{path} has a size of {size_bytes!r:.40}")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise ValueError(f"{path} has the sha256 {sha256!r:.80}")
    return ExportedFile(path, size_bytes, sha256)


def _offset_to_json(one: RecordedOffset) -> list[Any]:
    return [
        one.group_id,
        one.group_type.value,
        one.protocol_type,
        one.topic_partition.partition,
        *one.committed,
        one.committed_ms,
    ]


def _offset(topic: Topic, row: Sequence[Any]) -> RecordedOffset:
    group_id, kind, protocol, partition, offset, metadata, epoch, committed_ms = row
    if committed_ms is not None:
        _whole(committed_ms)
    if not _text(group_id) or len(group_id) > 10_000:
        raise ValueError(f"{group_id!r:.80} is no group")
    return RecordedOffset(
        group_id,
        GroupType(_text(kind)),
        _text(protocol),
        topic.partition(partition) if _is_whole(partition) else TopicPartition(topic.name, -1),
        topic.topic_id,
        OffsetAndMetadata(_whole(offset), _text(metadata), _whole(epoch, -1)),
        committed_ms,
    )


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values, if no two are of one name.

    Raises:
        ValueError: two are.
    """
    found = tuple(values)
    names = [one.topic.name if isinstance(one, ExportedTopic) else one for one in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has {twice!r} twice")
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(value: Any, least: int = 0) -> int:
    if not _is_whole(value) or not least <= value < 2**63:
        raise ValueError(f"{value!r:.80} is not a whole number from {least} on")
    return int(value)


def _number(key: str) -> int:
    if not re.fullmatch(r"0|[1-9]\d{0,4}", key, re.ASCII):
        raise ValueError(f"{key!r:.80} is no partition")
    return int(key)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is not text")
    return value


def _list(value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or length not in (None, len(value)):
        raise ValueError(f"{value!r:.80} is not a list{'' if length is None else f' of {length}'}")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.80} is not an object")
    return value

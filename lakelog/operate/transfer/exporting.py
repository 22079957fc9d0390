"""Exports topics: each as a table at a path, with all of its log in it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol
from uuid import UUID

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...archive.plan import FlushLimit, plan
from ...base.failpoints import failpoint
from ...cold.by_path.path_table import PathTable
from ...cold.by_path.segment_writer import WrittenFile, write_segment_file
from ...cold.change import RowsOf
from ...cold.registers import ArchivedEnd, CleanedEnd, ErasedEnd, LogStart, Register, ReservedEnd
from ...cold.schema import value_columns
from ...cold.store.storage import Storage
from ...cold.table import ColdSnapshot, ColdTable
from ...engines.engine import InlineEngine
from ...errors import (
    InvalidArgumentError,
    MissingFileError,
    TrimmedError,
)
from ...groups.recorded_offset import RecordedOffset
from ...values.offset_ranges import merged
from ...values.offsets import HotSegments
from ...values.producer_calls import REMEMBERED_CALLS, ProducerCall
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange, TopicPartition
from .copying import Copied, Tell, ToCopy
from .manifest import DataFile, ExportedFile, ExportedPartition, ExportedTopic, Manifest

logger = logging.getLogger(__name__)

#: How often a topic is looked at again, of which files went while they were copied. Vacuum keeps
#: removed files for a day, so that even one look is rarely too few.
_TRIES = 5


class ExportWriter(Protocol):
    """A folder or an archive that an export is written into."""

    where: str
    stage: Storage  # where tables are made for it
    export_id: UUID

    def begin(self, folder: str) -> None: ...
    def put(self, files: Sequence[ToCopy], tell: Tell) -> list[Copied]: ...
    def took(self, paths: Sequence[str], tell: Tell) -> list[Copied]: ...
    def clear(self, folder: str, keep: Iterable[str]) -> None: ...
    def finish(self, manifest: bytes) -> None: ...
    def close(self) -> None: ...


class HotPart(Protocol):
    """What an export asks of the hot tier; see `HotLog`."""

    def segments(
        self,
        topic_partitions: Iterable[TopicPartition],
        *,
        topic_id: UUID | None = None,
        calls: int = 0,
    ) -> Mapping[TopicPartition, HotSegments]: ...

    def now_ms(self) -> int: ...


class Source(Struct, frozen=True):
    """Where a topic that is exported lies.

    Args:
        table: None for an untiered one.
        hot: None: only what is archived is exported.
        rows_of: reads hot ranges.
        groups: what groups had committed before.
    """

    topic: Topic
    table: ColdTable | None
    hot: HotPart | None
    rows_of: RowsOf
    groups: Sequence[RecordedOffset]


class Progress(Struct, frozen=True):
    """How far a transfer has come."""

    done_bytes: int
    total_bytes: int  # as far as it is known yet


class Telling:
    """Counts the bytes that are done, for whoever wants to know. Thread-safe."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._progress = progress
        self._lock = threading.Lock()  # also so that who is told hears of more each time
        self._done_bytes = self._total_bytes = 0

    def expect(self, size_bytes: int) -> None:
        """So many more are to be done."""
        with self._lock:
            self._total_bytes += size_bytes

    def tell(self, size_bytes: int) -> None:
        """So many were done."""
        with self._lock:
            self._done_bytes += size_bytes
            if self._progress is not None:
                self._progress(Progress(self._done_bytes, max(self._done_bytes, self._total_bytes)))


class _Seen(Struct, frozen=True):
    """One topic at one moment: a version of its table, and the hot log above it."""

    groups: Sequence[RecordedOffset]
    hot: Mapping[int, HotSegments]
    cold: ColdSnapshot
    files: Sequence[WrittenFile]
    table: PathTable | None
    hot_files: Sequence[WrittenFile] = ()
    registers: Mapping[Register, int] | None = None
    calls: Mapping[int, Sequence[ProducerCall]] | None = None


def export(
    sources: Sequence[Source],
    writer: ExportWriter,
    *,
    exported_ms: int,
    version: str,
    progress: Callable[[Progress], None] | None = None,
) -> Manifest:
    """Exports topics, each as it is at one moment; see `Lakelog.export`.

    Args:
        version: lakelog's.

    Raises:
        InvalidArgumentError: a table by name.
        MissingFileError: the table names a file that is gone.
        ColdTierError: see `ColdTable.snapshot`; or the export cannot be written.
    """
    telling = Telling(progress)
    begun = [_begun(source, writer, telling) for source in sources]
    failpoint("export.after_files")
    # What a resumed archive cannot keep comes last: each attempt makes it anew.
    topics = [
        _finished(source, seen, copied, writer, telling)
        for source, (seen, copied) in zip(sources, begun, strict=True)
    ]
    failpoint("export.after_tables")
    manifest = Manifest(writer.export_id, exported_ms, version, tuple(topics))
    writer.finish(manifest.to_json())
    return manifest


def _begun(
    source: Source, writer: ExportWriter, telling: Telling
) -> tuple[_Seen, dict[str, ExportedFile]]:
    """Looks at a topic, writes its hot records into the stage, and copies its files.

    What archivers and cleanups remove meanwhile is there in another form: a new look tells.
    """
    topic = source.topic
    for attempt in range(_TRIES):
        writer.begin(_folder(topic))
        try:
            seen = _staged(source, _look(source), writer)
            return seen, _copied(topic, seen, writer, telling)
        except (MissingFileError, TrimmedError) as error:
            if attempt == _TRIES - 1:
                raise
            logger.info(
                "%s went on while it was exported, so it is looked at again: %s", topic.name, error
            )
    raise AssertionError("the last try returns or raises")


def _look(source: Source) -> _Seen:
    """Groups first, then hot, then cold: what moves on meanwhile is in the later ones, too."""
    topic, table = source.topic, source.table
    groups = source.groups
    seen: Mapping[TopicPartition, HotSegments] = {}
    if source.hot is not None:
        seen = source.hot.segments(
            topic.topic_partitions(), topic_id=topic.topic_id, calls=REMEMBERED_CALLS
        )
    hot = {tp.partition: offsets for tp, offsets in seen.items()}
    if table is None:
        return _Seen(groups, hot, ColdSnapshot(), (), None)
    if not isinstance(table, PathTable):
        raise InvalidArgumentError(
            f"topic {topic.name!r} is archived into {table.where}, a table by name, whose files "
            "are its catalog's: it cannot be exported. Copy its rows by Spark, or archive topics "
            "that are to be exported into tables at a path",
            topic=topic.name,
        )
    snapshot, files = table.described()
    return _Seen(groups, hot, snapshot, files, table)


def _staged(source: Source, seen: _Seen, writer: ExportWriter) -> _Seen:
    """With the hot records in files, as an archiver would write them."""
    topic = source.topic
    now_ms = 0 if source.hot is None else source.hot.now_ms()
    change = plan(topic, seen.hot, seen.cold, FlushLimit(), now_ms)
    write = partial(
        write_segment_file,
        topic=topic,
        storage=writer.stage,
        rows_of=source.rows_of,
        columns=_columns(topic, seen.table),
    )
    written = [write(add) for add in change.adds]
    failpoint("export.after_hot")
    calls: dict[int, Sequence[ProducerCall]] = {}
    if seen.table is not None:
        calls |= seen.table.last_calls(range(topic.partitions))
    registers: dict[Register, int] = {}
    for number in range(topic.partitions):
        registers |= _registers(seen, number)
    registers |= change.registers
    return replace(seen, hot_files=written, registers=registers, calls={**calls, **change.calls})


def _columns(topic: Topic, table: PathTable | None) -> pa.Schema:
    held = None if table is None else table.columns()
    return held if held is not None and len(held) else value_columns(topic)


def _registers(seen: _Seen, number: int) -> dict[Register, int]:
    cold = seen.cold
    return {
        ArchivedEnd(number): cold.archived_end(number),
        LogStart(number): cold.log_start(number),
        CleanedEnd(number): cold.cleaned_end(number),
        ErasedEnd(number): cold.erased_end(number),
        ReservedEnd(number): cold.reserved_end(number),
    }


def _copied(
    topic: Topic, seen: _Seen, writer: ExportWriter, telling: Telling
) -> dict[str, ExportedFile]:
    """Copies the table's files."""
    if seen.table is None:
        return {}
    storage, place = seen.table.storage, seen.table.path
    sizes = {one.file.path: one.file.size_bytes for one in seen.files}
    telling.expect(sum(sizes.values()))

    ordered = sorted(sizes)
    files = [
        ToCopy(
            f"{_folder(topic)}/{path}",
            sizes[path],
            partial(storage.opened, f"{place}/{path}"),
            f"{place}/{path}",
        )
        for path in ordered
    ]
    return _exported(ordered, writer.put(files, telling.tell))


def _finished(
    source: Source,
    seen: _Seen,
    copied: Mapping[str, ExportedFile],
    writer: ExportWriter,
    telling: Telling,
) -> ExportedTopic:
    """Makes the table of a topic whose files are all there."""
    topic = source.topic
    assert seen.registers is not None  # `_staged` has them
    assert seen.calls is not None
    made = PathTable(topic, writer.stage, InlineEngine(), source.rows_of)
    files = [*seen.files, *seen.hot_files]
    made.create_with(files, seen.registers, {}, _columns(topic, seen.table))
    made.snapshot()  # registers and files agree, or nothing is exported
    folder = _folder(topic)
    held = dict(copied)
    log = writer.stage.file_names(f"{made.path}/_delta_log")
    fresh = [f"_delta_log/{name}" for name in log]
    made_paths = [*(one.file.path for one in seen.hot_files), *sorted(fresh)]
    taken = writer.took([f"{folder}/{path}" for path in made_paths], telling.tell)
    held |= _exported(made_paths, taken)
    data = {one.file.path for one in files}
    exported = ExportedTopic(
        topic,
        tuple(_partition(seen, number) for number in range(topic.partitions)),
        tuple(_data_file(held[f.file.path], f) for f in files),
        tuple(held[path] for path in sorted(held) if path not in data),
        {number: of_one for number, of_one in seen.calls.items() if of_one},
        _of_topic(topic, seen),
        {n: found for n in range(topic.partitions) if (found := _gaps(seen, n))},
    )
    writer.clear(folder, held)
    return exported


def _data_file(held: ExportedFile, written: WrittenFile) -> DataFile:
    modified_ms, stats = written.file.modified_ms, written.stats
    return DataFile(held.path, held.size_bytes, held.sha256, modified_ms, stats)


def _exported(paths: Sequence[str], found: Sequence[Copied]) -> dict[str, ExportedFile]:
    return {
        path: ExportedFile(path, one.size_bytes, one.sha256)
        for path, one in zip(paths, found, strict=True)
    }


def _partition(seen: _Seen, number: int) -> ExportedPartition:
    assert seen.registers is not None
    log_start = seen.registers[LogStart(number)]
    archived_end = seen.registers[ArchivedEnd(number)]
    hot_end = seen.hot[number].log_end if number in seen.hot else 0
    return ExportedPartition(
        log_start,
        archived_end,
        seen.registers[CleanedEnd(number)],
        seen.registers[ErasedEnd(number)],
        max(log_start, archived_end, hot_end),
    )


def _gaps(seen: _Seen, number: int) -> Sequence[OffsetRange]:
    """Those within what is archived; one behind that is told by the log's end."""
    assert seen.registers is not None
    start, end = seen.registers[LogStart(number)], seen.registers[ArchivedEnd(number)]
    gaps = seen.hot[number].gaps if number in seen.hot else ()
    clipped = (OffsetRange(max(start, one.start), min(end, one.end)) for one in gaps)
    return merged(clipped)


def _of_topic(topic: Topic, seen: _Seen) -> tuple[RecordedOffset, ...]:
    """What groups have committed of a topic. One that was put beyond the end is at the end: what
    comes there in another log is not what it skipped in this one.
    """
    return tuple(
        _bounded(one, _partition(seen, one.topic_partition.partition).log_end)
        for one in seen.groups
        if one.is_of(topic)
    )


def _bounded(one: RecordedOffset, log_end: int) -> RecordedOffset:
    offset = min(one.committed.offset, log_end)
    return replace(one, committed=one.committed._replace(offset=offset))


def _folder(topic: Topic) -> str:
    return f"{topic.name}/{topic.topic_id}"

"""Exports topics: each as a table at a path, with all of its log in it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

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
from ...hot.hot_log import HotLog
from ...values.offset_ranges import merged
from ...values.offsets import HotSegments
from ...values.producer_calls import REMEMBERED_CALLS, ProducerCall
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from .copying import Copied, ToCopy
from .manifest import DataFile, ExportedFile, ExportedPartition, ExportedTopic, Manifest
from .places import FolderWriter

logger = logging.getLogger(__name__)

#: How often a topic is looked at again, of which files went while they were copied. Vacuum keeps
#: removed files for a day, so that even one look is rarely too few.
_TRIES = 5


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
    hot: HotLog | None
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


def export(
    sources: Sequence[Source],
    writer: FolderWriter,
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
    topics = [_exported(source, writer, telling) for source in sources]
    failpoint("export.after_tables")
    manifest = Manifest(writer.export_id, exported_ms, version, tuple(topics))
    writer.finish(manifest)
    return manifest


class _Moment(Struct, frozen=True):
    """A topic at one moment: a version of its table, and the hot log above it.

    Args:
        table: None for an untiered topic.
        files: the table's.
        hot_files: what Redis alone holds, as an archiver would write it.
        registers: as they are once that is archived.
        calls: what producers had sent last, by partition, likewise.
    """

    hot: Mapping[int, HotSegments]
    table: PathTable | None
    files: Sequence[WrittenFile]
    hot_files: Sequence[WrittenFile]
    registers: Mapping[Register, int]
    calls: Mapping[int, Sequence[ProducerCall]]

    def partition(self, number: int) -> ExportedPartition:
        """Where a partition stands."""
        log_start, archived_end, cleaned_end, erased_end = (
            self.registers[one(number)] for one in (LogStart, ArchivedEnd, CleanedEnd, ErasedEnd)
        )
        hot_end = self.hot[number].log_end if number in self.hot else 0
        log_end = max(log_start, archived_end, hot_end)
        return ExportedPartition(log_start, archived_end, cleaned_end, erased_end, log_end)

    def gaps(self, number: int) -> Sequence[OffsetRange]:
        """Those within what is archived; one behind that is told by the log's end."""
        start, end = self.registers[LogStart(number)], self.registers[ArchivedEnd(number)]
        gaps = self.hot[number].gaps if number in self.hot else ()
        return merged(OffsetRange(max(start, one.start), min(end, one.end)) for one in gaps)


def _exported(source: Source, writer: FolderWriter, telling: Telling) -> ExportedTopic:
    """Looks at a topic, writes its hot records into the export, and copies its files.

    What archivers and cleanups remove meanwhile is there in another form: a new look tells.
    """
    topic = source.topic
    for attempt in range(_TRIES):
        writer.begin(_folder(topic))
        try:
            moment = _looked_at(source, writer.storage)
            return _made(source, moment, _copied(topic, moment, writer, telling), writer, telling)
        except (MissingFileError, TrimmedError) as error:
            if attempt == _TRIES - 1:
                raise
            logger.info(
                "%s went on while it was exported, so it is looked at again: %s", topic.name, error
            )
    raise AssertionError("the last try returns or raises")


def _looked_at(source: Source, storage: Storage) -> _Moment:
    """Hot first, then cold: what is archived meanwhile is in both.

    Args:
        storage: of the export, where hot records are written.
    """
    topic, table = source.topic, source.table
    hot: Mapping[int, HotSegments] = {}
    if source.hot is not None:
        seen = source.hot.segments(
            topic.topic_partitions(), topic_id=topic.topic_id, calls=REMEMBERED_CALLS
        )
        hot = {tp.partition: offsets for tp, offsets in seen.items()}
    cold, files = ColdSnapshot(), cast("Sequence[WrittenFile]", ())
    calls: dict[int, Sequence[ProducerCall]] = {}
    if table is not None:
        if not isinstance(table, PathTable):
            raise InvalidArgumentError(
                f"topic {topic.name!r} is archived into {table.where}, a table by name, whose "
                "files are its catalog's: it cannot be exported. Copy its rows by Spark, or "
                "archive topics that are to be exported into tables at a path",
                topic=topic.name,
            )
        cold, files = table.described()
        calls |= table.last_calls(range(topic.partitions))
    now_ms = 0 if source.hot is None else source.hot.now_ms()
    change = plan(topic, hot, cold, FlushLimit(), now_ms)
    write = partial(
        write_segment_file,
        topic=topic,
        storage=storage,
        rows_of=source.rows_of,
        columns=_columns(topic, table),
    )
    written = [write(add) for add in change.adds]
    failpoint("export.after_hot")
    registers: dict[Register, int] = {}
    for number in range(topic.partitions):
        registers |= {
            ArchivedEnd(number): cold.archived_end(number),
            LogStart(number): cold.log_start(number),
            CleanedEnd(number): cold.cleaned_end(number),
            ErasedEnd(number): cold.erased_end(number),
            ReservedEnd(number): cold.reserved_end(number),
        }
    registers |= change.registers
    return _Moment(hot, table, files, written, registers, {**calls, **change.calls})


def _columns(topic: Topic, table: PathTable | None) -> pa.Schema:
    held = None if table is None else table.columns()
    return held if held is not None and len(held) else value_columns(topic)


def _copied(
    topic: Topic, moment: _Moment, writer: FolderWriter, telling: Telling
) -> dict[str, ExportedFile]:
    """Copies the table's files."""
    table = moment.table
    if table is None:
        return {}
    sizes = {one.file.path: one.file.size_bytes for one in moment.files}
    telling.expect(sum(sizes.values()))
    ordered = sorted(sizes)
    files = []
    for path in ordered:
        where = f"{table.path}/{path}"
        source = partial(table.storage.opened, where)
        files.append(ToCopy(f"{_folder(topic)}/{path}", sizes[path], source, where))
    held = _held(ordered, writer.put(files, telling.tell))
    failpoint("export.after_files")
    return held


def _made(
    source: Source,
    moment: _Moment,
    copied: Mapping[str, ExportedFile],
    writer: FolderWriter,
    telling: Telling,
) -> ExportedTopic:
    """Makes the table of a topic whose files are all there."""
    topic, folder = source.topic, _folder(source.topic)
    made = PathTable(topic, writer.storage, InlineEngine(), source.rows_of)
    files = [*moment.files, *moment.hot_files]
    made.create_with(files, moment.registers, {}, _columns(topic, moment.table))
    made.snapshot()  # registers and files agree, or nothing is exported
    log = sorted(writer.storage.file_names(f"{made.path}/_delta_log"))
    paths = [one.file.path for one in moment.hot_files] + [f"_delta_log/{name}" for name in log]
    taken = writer.made([f"{folder}/{path}" for path in paths], telling.tell)
    held = {**copied, **_held(paths, taken)}
    data = {one.file.path for one in files}
    partitions = tuple(map(moment.partition, range(topic.partitions)))
    writer.clear(folder, held)
    return ExportedTopic(
        topic,
        partitions,
        tuple(
            DataFile(
                *(one.path, one.size_bytes, one.sha256, written.file.modified_ms, written.stats)
            )
            for written in files
            for one in (held[written.file.path],)
        ),
        tuple(held[path] for path in sorted(held) if path not in data),
        {number: of_one for number, of_one in moment.calls.items() if of_one},
        tuple(
            _bounded(one, partitions[one.topic_partition.partition].log_end)
            for one in source.groups
            if one.is_of(topic)
        ),
        {n: found for n in range(topic.partitions) if (found := moment.gaps(n))},
    )


def _held(paths: Sequence[str], found: Sequence[Copied]) -> dict[str, ExportedFile]:
    return {
        path: ExportedFile(path, one.size_bytes, one.sha256)
        for path, one in zip(paths, found, strict=True)
    }


def _bounded(one: RecordedOffset, log_end: int) -> RecordedOffset:
    """Of a group that was put beyond the end, the end: what comes there in another log is not what
    it skipped in this one.
    """
    offset = min(one.committed.offset, log_end)
    return replace(one, committed=one.committed._replace(offset=offset))


def _folder(topic: Topic) -> str:
    return f"{topic.name}/{topic.topic_id}"

"""Erasing, planned: which records match, which files hold them, and what is written in their place.

Offsets stay, and gaps appear. The last record of a partition is kept, since the register
*archived_end* goes by it, but without its key, value and headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..cold.change import Change, Rewrite
from ..cold.offset_set import OffsetSet
from ..cold.registers import ErasedEnd, Register
from ..cold.segment import SegmentFile
from ..cold.table import ColdSnapshot, RowReader
from ..errors import CorruptRecordError, MissingFileError
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange


class Condition(Protocol):
    """Decides by each record alone whether it is to go. Picklable, for it runs on executors."""

    @property
    def keys(self) -> frozenset[bytes] | None:
        """The keys that a match can have; None: any, or none."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The columns of `RECORDS` that it reads, ``offset`` among them."""
        ...

    def may_match(self, file: SegmentFile) -> bool:
        """Whether a file can hold a match, by what the table's log says of it."""
        ...

    def holds(self, records: pa.RecordBatch, partition: int) -> np.ndarray:
        """Which rows match: a boolean for each.

        Args:
            records: at least its `columns`.
        """
        ...


class MatchSearch(Struct, frozen=True):
    """One task: a file, and what is looked for in it."""

    file: SegmentFile
    condition: Condition
    last_offset: int = -1  # of the partition: its record stays, and may have been erased before

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return self.file.size_bytes


class Matches(Struct, frozen=True, eq=False):
    """What was found in a file; of one that cannot be read, why."""

    file: SegmentFile
    offsets: OffsetSet
    error: MissingFileError | CorruptRecordError | None = None

    def __bool__(self) -> bool:
        return len(self.offsets) > 0


def find_matches(reader: RowReader, search: MatchSearch) -> Matches:
    """The records of a file that match. Bounded memory, but for about a bit for each match.

    Runs on: executor (or in process).
    """
    file = search.file
    found = [np.empty(0, np.int64)]
    try:
        for stretch in _stretches(reader, search):
            rows = reader.read([file], stretch.start, stretch.end, search.condition.columns)
            for batch in rows:
                mask = search.condition.holds(batch, file.partition)
                offsets = batch.column("offset").to_numpy(zero_copy_only=False)
                mask &= ~_erased(batch, offsets, search.last_offset)
                found.append(offsets[mask])
    except (MissingFileError, CorruptRecordError) as error:
        return Matches(file, OffsetSet.of(()), error)
    return Matches(file, OffsetSet.of(np.concatenate(found)))


def _stretches(reader: RowReader, search: MatchSearch) -> Sequence[OffsetRange]:
    file, keys = search.file, search.condition.keys
    if keys is None:
        return [OffsetRange(file.start_offset, file.end_offset)]
    return reader.with_keys([file], file.start_offset, file.end_offset, keys)


def _erased(batch: pa.RecordBatch, offsets: np.ndarray, last_offset: int) -> np.ndarray:
    """Whether a row is the partition's last record and has nothing left to erase."""
    at = np.flatnonzero(offsets == last_offset)
    mask = np.zeros(len(offsets), np.bool_)
    for row in at.tolist():
        one = batch.slice(row, 1)
        empty = [
            name not in batch.schema.names or one.column(name).null_count == 1
            for name in ("key", "value")
        ]
        headers = (
            "headers" not in batch.schema.names
            or not pc.list_value_length(one.column("headers"))[0].as_py()
        )
        mask[row] = all(empty) and headers
    return mask


# -- the rewrites. Pure --------------------------------------------------------------------------


def plan_erasure(topic: Topic, cold: ColdSnapshot, found: Iterable[Matches]) -> list[Rewrite]:
    """The rewrites that take the matches out of their files, by partition and offset.

    Files without a match stay as they are, unless their range lies within that of a file that goes.
    """
    by_partition: dict[int, list[Matches]] = {}
    for matches in found:
        if matches:
            by_partition.setdefault(matches.file.partition, []).append(matches)
    rewrites = []
    for partition, there in sorted(by_partition.items()):
        last = cold.archived_end(partition) - 1
        for files in _together(cold, partition, [one.file for one in there]):
            paths = {file.path for file in files}
            gone = OffsetSet.union(one.offsets for one in there if one.file.path in paths)
            offsets = gone.to_numpy()
            rewrites.append(
                Rewrite(
                    topic.partition(partition),
                    min(file.segment for file in files),
                    tuple(files),
                    OffsetSet.of(offsets[offsets != last]),
                    nulled=OffsetSet.of(offsets[offsets == last]),
                )
            )
    return rewrites


def erasure_change(cold: ColdSnapshot, rewrites: Sequence[Rewrite]) -> Change:
    """The commit that makes these rewrites, and notes below which offsets some may be missing."""
    registers: dict[Register, int] = {}
    for rewrite in rewrites:
        assert rewrite.without is not None
        if len(rewrite.without):
            register = ErasedEnd(rewrite.topic_partition.partition)
            end = int(rewrite.without.to_numpy()[-1]) + 1
            before = registers.get(register, cold.erased_end(register.partition))
            registers[register] = max(before, end)
    removes = tuple(file for rewrite in rewrites for file in rewrite.files)
    return Change(adds=tuple(rewrites), removes=removes, registers=registers)


def _together(
    cold: ColdSnapshot, partition: int, hit: Sequence[SegmentFile]
) -> list[list[SegmentFile]]:
    """The files that become one: a rewrite takes all files that lie in its range."""
    known = {file.path: file for file in cold.files.of_partition(partition)}
    groups: list[list[SegmentFile]] = []
    for file in sorted(hit, key=lambda file: (file.start_offset, file.end_offset)):
        group = {file.path: file}
        if groups and file.path in {one.path for one in groups[-1]}:
            continue
        while True:
            start = min(one.start_offset for one in group.values())
            end = max(one.end_offset for one in group.values())
            if groups and start < max(one.end_offset for one in groups[-1]):
                group |= {one.path: one for one in groups.pop()}
                continue
            within = {path: known[path] for path in cold.files.within(partition, start, end)}
            if within.keys() <= group.keys():
                break
            group |= within
        groups.append(sorted(group.values(), key=lambda one: one.start_offset))
    return groups

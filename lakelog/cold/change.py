"""A change of a topic's cold tier: rows to add, files to drop, registers to move; all or nothing.

When another commit comes in between, each of its partitions stands or falls by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from uuid import UUID

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import force_setattr

from ..errors import InvalidArgumentError
from ..values.producer_calls import ProducerCall
from ..values.topic_partition import TopicPartition
from .offset_set import OffsetSet
from .registers import ArchivedEnd, LogStart, Register
from .segment import SegmentFile


@dataclass(frozen=True, slots=True)
class HotRange:
    """Offsets [start, end) of one segment, to be copied from the hot tier into one file."""

    topic_partition: TopicPartition
    topic_id: UUID
    segment: int  # its base offset; above start_offset when the range begins with a gap
    start_offset: int
    end_offset: int  # exclusive; the record before it exists: no range ends in a gap
    #: Stored bytes in it, as far as the plan knows; they make no other range of it.
    size_bytes: int = dataclasses.field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.start_offset < self.end_offset or not 0 <= self.segment < self.end_offset:
            raise InvalidArgumentError(
                f"[{self.start_offset}, {self.end_offset}) of segment {self.segment} of "
                f"{self.topic_partition} is not a range that a file can hold"
            )


class Rewrite(Struct, frozen=True, eq=False):
    """Files of one partition to be rewritten as one file: the same rows, less some."""

    topic_partition: TopicPartition
    segment: int  # the base offset that the new file goes to
    files: tuple[SegmentFile, ...]  # at least one; all of them are in the change's removes
    without: OffsetSet | None = None  # offsets to leave out
    delete_horizon_ms: int | None = None  # given to each tombstone that has none yet
    aside: bool = False  # no rows: an empty file that stands in for one that is skipped
    hot: HotRange | None = None  # rows to take instead: the files are gone, hot still has them all
    #: Offsets whose records stay without key, value and headers: a partition's last, of what is
    #: erased. None: nothing is erased.
    nulled: OffsetSet | None = None

    def __post_init__(self) -> None:
        if not self.files:
            raise InvalidArgumentError(f"a rewrite of {self.topic_partition} names no files")

    @property
    def size_bytes(self) -> int:
        """Bytes of its files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def start_offset(self) -> int:
        return min(file.start_offset for file in self.files)

    @property
    def end_offset(self) -> int:
        return max(file.end_offset for file in self.files)


RowsOf = Callable[[HotRange], Iterator[pa.RecordBatch]]
"""How a hot range is read: `RECORDS` batches in offset order, in bounded memory. Picklable.

Runs on: executor. It is given to the table, so that cold never imports hot.
"""


def nothing_hot(hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    """The `RowsOf` of a process that only reads and cleans."""
    raise InvalidArgumentError(f"nothing is archived here, so {hot_range} cannot be copied")


class Change(Struct, frozen=True, eq=False):
    """What one commit does.

    Raises:
        InvalidArgumentError: the parts contradict each other: hot ranges leave a hole, or their end
            is not the ``ArchivedEnd`` they move, the files of a rewrite stay, or calls lie at or
            above the ``ArchivedEnd``.
    """

    adds: tuple[HotRange | Rewrite, ...] = ()
    removes: tuple[SegmentFile, ...] = ()
    registers: Mapping[Register, int] = field(default_factory=dict)
    data_change: bool = True  # False: the same records in other files
    #: The topic is archived no more: all files of its partitions go, and archived ends move to the
    #: log starts, back too. Hot holds what lies above.
    empties: bool = False
    #: The topic's config version whose policy asks for the change; None: no policy does. Such a
    #: change is refused once the settings are newer: by them it might be planned differently.
    config_version: int | None = None
    #: By partition whose ``ArchivedEnd`` moves, what its producers had sent last below it; see
    #: `lakelog.producer_calls`. It replaces what the table knew of them.
    calls: Mapping[int, Sequence[ProducerCall]] = field(default_factory=dict)
    _hot_ranges: Mapping[int, list[HotRange]] = field(default_factory=dict)  # its own

    def __post_init__(self) -> None:
        hot_ranges: dict[int, list[HotRange]] = {}
        for add in self.adds:
            if isinstance(add, HotRange):
                hot_ranges.setdefault(add.topic_partition.partition, []).append(add)
        for ranges in hot_ranges.values():
            ranges.sort(key=lambda add: add.start_offset)
        force_setattr(self, "_hot_ranges", hot_ranges)
        force_setattr(self, "registers", MappingProxyType(dict(self.registers)))
        force_setattr(self, "calls", MappingProxyType(dict(self.calls)))
        removed = {file.path for file in self.removes}
        for rewrite in self.adds:
            if isinstance(rewrite, Rewrite):
                kept = [file.path for file in rewrite.files if file.path not in removed]
                if kept:
                    raise InvalidArgumentError(
                        f"a rewrite of {rewrite.topic_partition} would double {kept}: put every "
                        "file that it reads into removes"
                    )
        for partition in self.partitions | self.calls.keys():
            if not self.empties:
                self._check_hot(partition)

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions it touches."""
        return frozenset(
            [add.topic_partition.partition for add in self.adds]
            + [file.partition for file in self.removes]
            + [register.partition for register in self.registers]
        )

    @property
    def operation(self) -> str:
        """What it does, in a word, for the table's history."""
        if self.empties:
            return "empty"
        if self._hot_ranges:
            return "archive"
        rewrites = [add for add in self.adds if isinstance(add, Rewrite)]
        if rewrites:
            if any(one.nulled is not None for one in rewrites):
                return "erase"
            if any(one.hot is not None for one in rewrites):
                return "archive again"
            aside = any(one.aside for one in rewrites)
            return "skip" if aside else "compact" if self.data_change else "optimize"
        if self.removes:
            return "retain"
        is_log_start = any(isinstance(register, LogStart) for register in self.registers)
        return "delete records" if is_log_start else "reserve offsets"

    @property
    def hot_partitions(self) -> frozenset[int]:
        """The partitions whose rows are copied from the hot tier."""
        return frozenset(self._hot_ranges)

    def hot_ranges(self, partition: int) -> list[HotRange]:
        """The partition's hot ranges, lowest first."""
        return list(self._hot_ranges.get(partition, ()))

    def _check_hot(self, partition: int) -> None:
        ranges = self.hot_ranges(partition)
        end = self.registers.get(ArchivedEnd(partition))
        if (ranges[-1].end_offset if ranges else None) != end:
            raise InvalidArgumentError(
                f"partition {partition}: the hot ranges end at "
                f"{ranges[-1].end_offset if ranges else 'nothing'}, but ArchivedEnd is to become "
                f"{end}; the two move together"
            )
        above = [call for call in self.calls.get(partition, ()) if call.base_offset >= (end or 0)]
        if above:
            raise InvalidArgumentError(
                f"partition {partition}: {above[0]} lies at or above the archived end {end}; a "
                "change tells only of calls that it, or one before it, archives"
            )
        for before, after in pairwise(ranges):
            if before.end_offset != after.start_offset:
                raise InvalidArgumentError(
                    f"partition {partition}: the hot ranges leave a hole or overlap between "
                    f"{before.end_offset} and {after.start_offset}"
                )

    def __reduce__(self) -> tuple[object, ...]:
        registers = dict(self.registers)
        return Change, (
            self.adds,
            self.removes,
            registers,
            self.data_change,
            self.empties,
            self.config_version,
            dict(self.calls),
        )

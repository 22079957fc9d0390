"""Which files are written again to erase records, and without which records. Pure.

Offsets stay, and gaps appear. The last record of a partition is kept, since the register
*archived_end* goes by it, but without its key, value and headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...cold.change import Change, Rewrite
from ...cold.offset_set import OffsetSet
from ...cold.registers import ErasedEnd, Register
from ...cold.segment import SegmentFile
from ...cold.table import ColdSnapshot
from ...values.topic import Topic
from .matches import Matches


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

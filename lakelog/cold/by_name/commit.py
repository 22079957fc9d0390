"""Turns a change into one commit of a table by name: its note and the rows that go. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterable
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from ...values.producer_calls import newest
from ..change import Change, HotRange, Rewrite
from ..registers import ReservedEnd
from ..segment import SegmentFile, SegmentIndex
from .notes import ARCHIVE, BASE_INTERVAL, CLEANUP, FOUND, MOST_CALLS, Note, Slice, State


class NamedCommit(Struct, frozen=True, eq=False):
    """The parts of a change that are committed.

    Files are merged by Spark's OPTIMIZE, which a catalog may keep to itself. Then a segment's rows
    are written again, in its place and as no new data. Delta takes such a commit for whole segments
    alone, so what an archiver added since the look at the rows would be lost. So the newest segment
    of each partition is left as it is until it is closed, when nobody adds to it any more.
    """

    note: Note
    ranges: tuple[HotRange, ...]  # copied from the hot tier
    rewrites: tuple[Rewrite, ...]  # rewritten without some rows
    merges: tuple[Rewrite, ...]  # the same rows in fewer files
    removed: tuple[SegmentFile, ...]  # their rows go, or are rewritten
    left: tuple[SegmentFile, ...]  # to the catalog, which alone may merge them

    @classmethod
    def of(
        cls,
        change: Change,
        standing: frozenset[int],
        noted: State,
        state: State,
        most_calls: int = MOST_CALLS,
        *,
        leaves_newest: bool = False,
    ) -> NamedCommit:
        """The commit of a change that was planned on a state.

        Args:
            standing: the partitions that are committed.
            noted: what the notes say; `state` adds what was looked up.
            most_calls: how many producers' calls a partition keeps.
            leaves_newest: no files of a newest segment are merged.
        """
        left: tuple[SegmentFile, ...] = ()
        if leaves_newest and _merges(change):
            change, left = _without_newest(change, standing, state)
        adds = [add for add in change.adds if add.topic_partition.partition in standing]
        ranges = tuple(add for add in adds if isinstance(add, HotRange))
        rewrites = tuple(add for add in adds if isinstance(add, Rewrite))
        removes = [file for file in change.removes if file.partition in standing]
        merges: tuple[Rewrite, ...] = ()
        if _merges(change):
            merges, rewrites = rewrites, ()
        kept = {file.path for rewrite in merges for file in rewrite.files}
        note = _note(change, standing, [*ranges, *rewrites, *merges], merges, noted, state)
        note = replace(
            note, calls={p: newest(of_one, most_calls) for p, of_one in note.calls.items()}
        )
        removed = tuple(file for file in removes if file.path not in kept and file.records)
        return cls(note, ranges, rewrites, merges, removed, left)

    @property
    def is_needed(self) -> bool:
        """Whether anything is left to be done."""
        return bool(self.note.added or self.note.gone or self.note.registers)

    def where(self, files: SegmentIndex) -> str:
        """The rows that go or are rewritten, as SQL.

        Names only partition columns if every segment goes as a whole and no archiver can add to it:
        then Delta drops files without reading them. The newest segment may grow meanwhile, so for
        it only the planned offsets are named.
        """
        segments: dict[int, set[int]] = {}
        spans: list[str] = []
        by_segment: dict[tuple[int, int], list[SegmentFile]] = {}
        for file in self.removed:
            by_segment.setdefault((file.partition, file.segment), []).append(file)
        whole = all(
            _is_whole(files, partition, base, together)
            for (partition, base), together in by_segment.items()
        )
        for (partition, base), together in by_segment.items():
            if whole:
                segments.setdefault(partition, set()).add(base)
            else:
                bases = sorted({file.segment for file in self.removed})
                spans += [
                    f"(partition = {partition} AND segment IN ({', '.join(map(str, bases))}) "
                    f"AND offset >= {one.start_offset} AND offset < {one.end_offset})"
                    for one in together
                ]
        return where_segments(segments) if whole else " OR ".join(spans)

    def where_merged(self, files: SegmentIndex) -> str:
        """The segments whose files become fewer, as SQL; empty if there are none.

        Delta merges all files of a segment or none. So merging the newest slices of an open segment
        makes one slice that lies in as many files as before. Once these slices hold as much as the
        rest, the whole segment is merged, with its files. So a record is copied no more often than
        at a path.
        """
        merged = {file.path for rewrite in self.merges for file in rewrite.files}
        segments: dict[int, set[int]] = {}
        for partition in {rewrite.topic_partition.partition for rewrite in self.merges}:
            for segment in files.segments(partition):
                paths = {file.path for file in segment.files if file.records}
                if paths and paths <= merged:
                    segments.setdefault(partition, set()).add(segment.base_offset)
        return where_segments(segments)


def _merges(change: Change) -> bool:
    """Whether a change does no more than put the same rows into fewer files."""
    rewrites = [add for add in change.adds if isinstance(add, Rewrite)]
    return not change.data_change and all(
        one.without is None and one.delete_horizon_ms is None for one in rewrites
    )


def _without_newest(
    change: Change, standing: frozenset[int], state: State
) -> tuple[Change, tuple[SegmentFile, ...]]:
    """A merging change without what it merges of newest segments, and the files of that."""
    newest: dict[int, int] = {}
    for one in state.slices.values():
        newest[one.partition] = max(one.segment, newest.get(one.partition, one.segment))
    left = [
        add
        for add in change.adds
        if isinstance(add, Rewrite)
        and add.topic_partition.partition in standing
        and any(file.segment == newest.get(file.partition) for file in add.files)
    ]
    files = tuple(file for add in left for file in add.files)
    paths = {file.path for file in files}
    adds = tuple(add for add in change.adds if add not in left)
    removes = tuple(file for file in change.removes if file.path not in paths)
    return replace(change, adds=adds, removes=removes), files


def where_segments(segments: dict[int, set[int]]) -> str:
    """Segments by partition, as SQL over partition columns alone."""
    return " OR ".join(
        f"(partition = {partition} AND segment IN ({', '.join(map(str, sorted(bases)))}))"
        for partition, bases in sorted(segments.items())
    )


def _is_whole(
    files: SegmentIndex, partition: int, base: int, removed: Iterable[SegmentFile]
) -> bool:
    rows = files.rows_of_partition(partition)
    paths = {file.path for file in removed}
    left = [
        path
        for path, segment, records in zip(
            rows["path"].to_pylist(),
            rows["segment"].to_pylist(),
            rows["records"].to_pylist(),
            strict=True,
        )
        if segment == base and records and path not in paths
    ]
    newest = max(rows["segment"].to_pylist(), default=base)
    return not left and base < newest


def _note(
    change: Change,
    standing: frozenset[int],
    adds: Iterable[HotRange | Rewrite],
    merges: Iterable[Rewrite],
    noted: State,
    state: State,
) -> Note:
    # Of an archive and a reservation, the second must notice the first.
    reserves = any(isinstance(register, ReservedEnd) for register in change.registers)
    kind = ARCHIVE if change.hot_partitions or reserves else CLEANUP
    now_ms = time.time_ns() // 1_000_000
    keys = {one.path: key for key, one in state.slices.items()}
    state = _looked_at(noted, state)
    gone = {keys[file.path] for file in change.removes if file.partition in standing}
    of_file = {one.path: one for one in state.slices.values()}
    added = [_added(add, merges, of_file, now_ms) for add in adds]
    changed = {
        key: one
        for key, one in state.slices.items()
        if key not in gone and noted.slices.get(key) != one
    }
    # Two archivers could both note the rows that a foreign commit left. So only cleanups note them:
    # of two cleanups, the second plans again.
    found = [one for one in changed.values() if one.kind == FOUND] if kind == CLEANUP else []
    lost = noted.slices.keys() - state.slices.keys() if kind == CLEANUP else set()
    epochs = {**dict.fromkeys((ARCHIVE, CLEANUP), 0), **state.epochs}
    base = None
    strange = any(one.kind == FOUND for one in changed.values())
    if not state.epochs or strange or sum(epochs.values()) % BASE_INTERVAL == 0:
        base = state
    return Note(
        uuid4().hex,
        kind,
        epochs[kind] + 1,
        state.version,
        {name: value for name, value in change.registers.items() if name.partition in standing},
        [*added, *found],
        [one for one in changed.values() if one.kind != FOUND],
        sorted(gone | lost),
        base,
        {number: change.calls[number] for number in change.calls if number in standing},
        change.operation,
    )


def _looked_at(noted: State, state: State) -> State:
    """The state without assumptions about slices, so that a later reader looks them up."""
    slices = {
        key: noted.slices.get(key, one) if one.is_assumed else one
        for key, one in state.slices.items()
    }
    return replace(state, slices=slices)


def _added(
    add: HotRange | Rewrite, merges: Iterable[Rewrite], of_file: dict[str, Slice], now_ms: int
) -> Slice:
    """The slice that an addition becomes. For a merge, everything is known beforehand."""
    new = Slice.of(add, now_ms)
    if not isinstance(add, Rewrite) or add not in merges:
        return new
    sources = [of_file[file.path] for file in add.files]
    filled = [one for one in sources if one.records]
    return replace(
        new,
        records=sum(one.records for one in sources),
        first=min((one.first for one in filled), default=new.start_offset),
        last=max((one.last for one in filled), default=-1),
        min_timestamp_ms=min((one.min_timestamp_ms for one in filled), default=-1),
        max_timestamp_ms=max((one.max_timestamp_ms for one in filled), default=-1),
        size_bytes=sum(one.size_bytes for one in sources),
    )

"""Which left-over files may go, against a model of what could still be committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.by_path.orphans import is_settled, may_be_orphan
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.segment import COLUMNS, SegmentFile, SegmentIndex, file_name, sources_digest
from lakelog.cold.table import ColdSnapshot

PARTITION = 0


@dataclass(frozen=True)
class File:
    path: str
    segment: int
    start: int
    end: int
    offsets: frozenset[int]  # of its records
    ours: bool = True

    def row(self) -> dict[str, object]:
        first, last = min(self.offsets, default=self.start), max(self.offsets, default=-1)
        return {
            "partition": PARTITION,
            "segment": self.segment,
            "path": self.path,
            "size_bytes": 1,
            "records": len(self.offsets),
            "start_offset": self.start if self.ours else first,
            "end_offset": self.end if self.ours else last + 1,
            "min_timestamp_ms": -1,
            "max_timestamp_ms": -1,
            "modified_ms": -1,
            "first": first,
            "last": last,
            "ours": self.ours,
        }


@dataclass
class Model:
    """A partition's files, and the rewrites that others have under way."""

    files: dict[str, File] = field(default_factory=dict)
    archived_end: int = 0
    numbers: count[int] = field(default_factory=count)
    under_way: dict[str, frozenset[str]] = field(default_factory=dict)  # clean file → sources

    def snapshot(self) -> ColdSnapshot:
        rows = [file.row() for file in self.files.values()]
        return ColdSnapshot(
            1,
            SegmentIndex(pa.Table.from_pylist(rows, schema=COLUMNS)),
            {ArchivedEnd(PARTITION): self.archived_end},
        )

    def name(self, kind: str, segment: int, start: int, end: int, digest: str = "") -> str:
        unique = digest + f"{next(self.numbers):0{32 - len(digest)}x}"
        name = file_name(kind, start, end, unique)
        return f"partition={PARTITION}/segment={segment}/{name}"

    def archive(self, records: int, gap: int) -> None:
        start, base = self.archived_end, self.archived_end + gap
        last = max((file.segment for file in self.files.values()), default=0)
        segment = base if gap else last
        end = base + records
        path = self.name("archive", segment, start, end)
        self.files[path] = File(path, segment, start, end, frozenset(range(base, end)))
        self.archived_end = end

    def sources(self, data: st.DataObject) -> list[SegmentFile]:
        """Neighbours, and whatever else lies in their range."""
        index = self.snapshot().files
        files = index.of_partition(PARTITION)
        low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(files) - 1)] * 2)))
        chosen = files[low : high + 1]
        while True:
            start = min(file.start_offset for file in chosen)
            end = max(file.end_offset for file in chosen)
            within = set(index.within(PARTITION, start, end))
            assert {file.path for file in chosen} <= within
            if len(within) == len(chosen):
                return chosen
            chosen = [file for file in files if file.path in within]

    def begin(self, data: st.DataObject) -> str:
        sources = self.sources(data)
        paths = frozenset(file.path for file in sources)
        start = min(file.start_offset for file in sources)
        end = max(file.end_offset for file in sources)
        path = self.name("clean", sources[0].segment, start, end, sources_digest(paths))
        self.under_way[path] = paths
        return path

    def commit(self, path: str, data: st.DataObject) -> None:
        sources = [self.files.pop(source) for source in self.under_way.pop(path)]
        offsets = frozenset().union(*(file.offsets for file in sources))
        if data.draw(st.booleans(), label="compacted"):
            offsets = frozenset(offset for offset in offsets if data.draw(st.booleans()))
        segment = min(file.segment for file in sources)
        start, end = (int(part) for part in path.rpartition("/")[2].split("-")[1:3])
        self.files[path] = File(path, segment, start, end, offsets)

    def retain(self, keep: int) -> None:
        for file in self.snapshot().files.of_partition(PARTITION)[:-keep]:
            del self.files[file.path]

    def optimize_by_others(self, segment: int) -> None:
        """All files of a segment become two, with every other record each."""
        sources = [file for file in self.files.values() if file.segment == segment]
        for file in sources:
            del self.files[file.path]
        offsets = sorted(frozenset().union(*(file.offsets for file in sources)))
        for part in (offsets[::2], offsets[1::2]):
            if part:
                path = f"partition={PARTITION}/segment={segment}/part-{next(self.numbers)}.parquet"
                self.files[path] = File(path, segment, 0, 0, frozenset(part), ours=False)


@given(data=st.data())
def test_a_rewrite_is_left_over_as_soon_as_it_cannot_be_committed_and_not_before(data):
    model = Model()
    for _ in range(data.draw(st.integers(2, 25), label="steps")):
        step = data.draw(st.sampled_from(["archive", "begin", "commit", "retain", "optimize"]))
        if step == "archive" or not model.files:
            model.archive(data.draw(st.integers(1, 9)), data.draw(st.sampled_from([0, 0, 1, 5])))
        elif step == "begin":
            model.begin(data)
        elif step == "commit":
            model.commit(model.begin(data), data)
        elif step == "retain":
            model.retain(data.draw(st.integers(1, 4)))
        else:
            segments = sorted({file.segment for file in model.files.values()})
            model.optimize_by_others(data.draw(st.sampled_from(segments)))
        snapshot = model.snapshot()
        for path, sources in model.under_way.items():
            committable = sources <= model.files.keys()
            assert may_be_orphan(path, snapshot)
            assert is_settled(path, snapshot) == (not committable), path


def test_a_rewrite_of_a_file_of_others_stays_under_way_when_its_neighbour_goes():
    """Such a file covers the gap before its segment, the more the fewer files lie below."""
    model = Model()
    model.archive(10, gap=0)
    model.archive(10, gap=5)
    model.optimize_by_others(15)
    sources = model.snapshot().files.of_partition(PARTITION)[1:]
    assert sources[0].start_offset == 10
    paths = frozenset(file.path for file in sources)
    path = model.name("clean", 15, 10, 25, sources_digest(paths))
    model.retain(keep=2)
    assert model.snapshot().files.of_partition(PARTITION)[0].start_offset == 0
    assert not is_settled(path, model.snapshot())


def test_an_archive_file_is_left_over_once_its_start_is_archived():
    model = Model(archived_end=10)
    snapshot = model.snapshot()
    for start, settled in [(0, True), (9, True), (10, False), (11, False)]:
        path = model.name("archive", 0, start, 20)
        assert may_be_orphan(path, snapshot) == is_settled(path, snapshot) == settled


def test_files_of_others_are_never_touched():
    snapshot = Model(archived_end=10).snapshot()
    clean = file_name("clean", 0, 10, "0" * 32)
    for path in ["part-00000.parquet", "partition=0/segment=0/part-1.parquet", clean, "notes.txt"]:
        assert not may_be_orphan(path, snapshot)
        assert not is_settled(path, snapshot)

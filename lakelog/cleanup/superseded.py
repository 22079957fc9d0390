"""Finding the records that compaction drops, from the key column alone.

Like Kafka's cleaner, it maps each key of the dirty segments to its latest offset, then goes through
clean and dirty segments and drops earlier records. Keys are compared byte for byte. The map is
bounded: if it would grow beyond the buffer, the search is cut into ranges of keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from ..base import compute as pc
from ..cold.offset_set import OffsetSet
from ..cold.segment import SegmentFile
from ..cold.table import RowReader
from ..errors import CorruptRecordError, MissingFileError
from ..values.config import MIB
from ..values.record import RECORDS
from ..values.topic_partition import TopicPartition

#: Keys are merged into the map, and looked up in it, in chunks of at least this many bytes.
CHUNK_BYTES = 32 * MIB
#: What `find_superseded` reads.
COLUMNS = ("offset", "key", "delete_horizon")

#: A search is cut into at most this many ranges of keys at a time.
MAX_CUTS = 64

_KEYS = pa.schema([RECORDS.field("key"), pa.field("offset", pa.int64())])


class Search(Struct, frozen=True):
    """One task: the files of a partition, and which keys to look for in them."""

    topic_partition: TopicPartition
    clean: tuple[SegmentFile, ...]
    dirty: tuple[SegmentFile, ...]
    now_ms: int
    buffer_bytes: int  # of the map: ``log.cleaner.dedupe.buffer.size``
    low: bytes | None = None  # keys in [low, high); None: no bound
    high: bytes | None = None

    @property
    def files(self) -> tuple[SegmentFile, ...]:
        return (*self.clean, *self.dirty)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def first(self) -> bool:
        """Whether this is the search that also counts records without a key."""
        return self.low is None

    @property
    def whole(self) -> bool:
        return self.low is None and self.high is None

    def cut(self, bounds: tuple[bytes, ...]) -> list[Search]:
        """The same search, cut into several by these keys."""
        edges = [self.low, *bounds, self.high]
        return [replace(self, low=low, high=high) for low, high in pairwise(edges)]


class FileFindings(Struct, frozen=True, eq=False):
    """What compaction has to do to one file."""

    superseded: OffsetSet  # the offsets that go, for whatever reason
    keyless: int = 0  # of them, those without a key
    expired: int = 0  # of them, tombstones past their horizon
    tombstones: int = 0  # that have no horizon yet

    @property
    def rewrite(self) -> bool:
        return bool(len(self.superseded) or self.tombstones)


class Found(Struct, frozen=True, eq=False):
    """A search's answer, by path."""

    search: Search
    files: dict[str, FileFindings]
    keys: int  # in the map


class TooManyKeys(Struct, frozen=True):
    """The map is full: the search must be cut at these keys."""

    search: Search
    bounds: tuple[bytes, ...]


class Unreadable(Struct, frozen=True):
    """A file is missing or damaged; the partition cannot be cleaned."""

    search: Search
    error: MissingFileError | CorruptRecordError


def find_superseded(reader: RowReader, search: Search) -> Found | TooManyKeys | Unreadable:
    """The records of the search's files that are not the latest of their keys.

    Also records without a key, and tombstones past their horizon. Memory is bounded by the buffer,
    not by the number of keys or records, except for about a bit for each dropped record.

    Runs on: executor (or in process).
    """
    try:
        return _find(reader, search)
    except _FullError as full:
        return TooManyKeys(search, full.bounds)
    except (MissingFileError, CorruptRecordError) as error:
        return Unreadable(search, error)


def _find(reader: RowReader, search: Search) -> Found:
    dirty = _Dirty(search, sum(file.records for file in search.dirty))
    keyless = {}
    for file in search.dirty:
        keyless[file.path] = 0
        for batch in _read(reader, file, ["offset", "key"]):
            keyless[file.path] += batch.column("key").null_count
            dirty.add(batch)
    latest = dirty.latest()
    files = {}
    for file in search.files:
        if file.path in keyless:
            gone = _superseded_dirty(reader, file, search, latest)
        else:
            gone = _superseded_clean(reader, file, latest)
        counted = keyless.get(file.path, 0)
        if search.first:
            files[file.path] = _with_tombstones(reader, file, search.now_ms, gone, counted)
        else:
            files[file.path] = FileFindings(OffsetSet.of(gone))
    return Found(search, files, len(latest.keys))


# -- the map -------------------------------------------------------------------------------------


class _FullError(Exception):
    def __init__(self, bounds: tuple[bytes, ...]) -> None:
        super().__init__("the map is full")
        self.bounds = bounds


class _Latest(Struct, frozen=True, eq=False):
    """The latest dirty offset of each key."""

    keys: pa.Array
    offsets: OffsetSet


class _Dirty(Struct, eq=False):
    """Builds the map, a chunk at a time."""

    search: Search
    records: int  # in all dirty files
    seen: int = 0
    held: list[pa.RecordBatch] = field(default_factory=list)
    held_bytes: int = 0
    map: pa.Table = field(default_factory=_KEYS.empty_table)  # key, its largest offset

    def add(self, batch: pa.RecordBatch) -> None:
        self.seen += batch.num_rows
        mapped = _in_range(batch, self.search)
        if mapped.num_rows:
            self.held.append(mapped)
            self.held_bytes += mapped.nbytes
        # Chunks as large as the map: then merging costs no more than a few times what it merges.
        enough = min(max(CHUNK_BYTES, self.map.nbytes), self.search.buffer_bytes // 2)
        if self.held_bytes > enough:
            self._merge()

    def latest(self) -> _Latest:
        self._merge()
        keys = self.map["key"].combine_chunks()
        return _Latest(keys, OffsetSet.of(self.map["offset"]))

    def _merge(self) -> None:
        rows = pa.concat_tables([self.map, pa.Table.from_batches(self.held, schema=_KEYS)])
        grouped = rows.group_by("key", use_threads=False).aggregate([("offset", "max")])
        self.map = pa.table([grouped["key"], grouped["offset_max"]], schema=_KEYS).combine_chunks()
        self.held, self.held_bytes = [], 0
        if self.map.nbytes > self.search.buffer_bytes // 2 and self.map.num_rows > 1:
            raise _FullError(self._bounds())

    def _bounds(self) -> tuple[bytes, ...]:
        """Keys that cut the search so that each part should fit with some room."""
        cuts = min(MAX_CUTS, 1 + -(-5 * self.records // (4 * max(1, self.seen))))
        keys = self.map["key"].combine_chunks()
        order = pc.array_sort_indices(keys)
        places = {len(keys) * cut // cuts for cut in range(1, cuts)} - {0}
        return tuple(keys[order[place].as_py()].as_py() for place in sorted(places))


def _in_range(batch: pa.RecordBatch, search: Search) -> pa.RecordBatch:
    """The rows with a key that is looked for; columns key, offset."""
    batch = pa.RecordBatch.from_arrays([batch.column("key"), batch.column("offset")], schema=_KEYS)
    keys = batch.column("key")
    if keys.null_count:
        batch = batch.filter(pc.is_valid(keys))
    mask = _range_mask(batch.column("key"), search)
    return batch if mask is None else batch.filter(mask)


def _range_mask(keys: pa.Array, search: Search) -> pa.Array | None:
    masks = []
    if search.low is not None:
        masks.append(pc.greater_equal(keys, pa.scalar(search.low, keys.type)))
    if search.high is not None:
        masks.append(pc.less(keys, pa.scalar(search.high, keys.type)))
    if not masks:
        return None
    return masks[0] if len(masks) == 1 else pc.and_(*masks)


# -- what it says of a file ----------------------------------------------------------------------


def _superseded_dirty(
    reader: RowReader, file: SegmentFile, search: Search, latest: _Latest
) -> np.ndarray:
    """The records that are not the latest of their key; the map has the offsets of those."""
    gone = [_NONE]
    # In a whole search, every key of the file is in the map, so offsets alone are enough.
    columns = ["offset"] if search.whole else ["offset", "key"]
    for batch in _read(reader, file, columns):
        offsets = _numpy(batch.column("offset"))
        drop = ~latest.offsets.mask(offsets)
        if not search.whole:
            mask = _range_mask(batch.column("key"), search)
            drop &= _numpy(pc.fill_null(mask, search.first))
        gone.append(offsets[drop])
    return np.concatenate(gone)


def _superseded_clean(reader: RowReader, file: SegmentFile, latest: _Latest) -> np.ndarray:
    """The records with a dirty record of the same key above them."""
    gone = [_NONE]
    held: list[pa.RecordBatch] = []
    held_bytes = 0

    def look_up() -> None:
        rows = pa.Table.from_batches(held).combine_chunks()
        hits = pc.is_in(rows["key"], value_set=latest.keys)
        gone.append(_numpy(rows["offset"].filter(hits)))

    if len(latest.keys):
        # A look-up begins by hashing the map, so it takes at least as much as the map holds.
        enough = max(CHUNK_BYTES, latest.keys.nbytes)
        for batch in _read(reader, file, ["offset", "key"]):
            held.append(batch)
            held_bytes += batch.nbytes
            if held_bytes > enough:
                look_up()
                held, held_bytes = [], 0
        if held:
            look_up()
    return np.concatenate(gone)


def _with_tombstones(
    reader: RowReader, file: SegmentFile, now_ms: int, gone: np.ndarray, keyless: int
) -> FileFindings:
    """These offsets, and those of tombstones past their horizon."""
    tombstones = reader.tombstones(file)
    expired = [_NONE]
    if tombstones.min_horizon_ms is not None and tombstones.min_horizon_ms <= now_ms:
        for batch in _read(reader, file, ["offset", "delete_horizon"]):
            horizons_us = batch.column("delete_horizon").cast(pa.int64())
            past = pc.fill_null(pc.less_equal(horizons_us, now_ms * 1000), fill_value=False)
            expired.append(_numpy(batch.column("offset").filter(past)))
    past_horizon = np.concatenate(expired)
    return FileFindings(
        OffsetSet.of(np.concatenate([gone, past_horizon])),
        keyless,
        len(past_horizon),
        tombstones.without_horizon,
    )


# -- small things ------------------------------------------------------------------------------

_NONE = np.empty(0, np.int64)


def _read(reader: RowReader, file: SegmentFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    return reader.read([file], file.start_offset, file.end_offset, columns)


def _numpy(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False))

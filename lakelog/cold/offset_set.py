"""A set of offsets to send to tasks: a bit for each offset where they are dense, else a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

#: A sorted list takes 8 bytes for each offset; bits take a byte for every 8 offsets of the span.
_BITS_A_LISTED_OFFSET = 64


class OffsetSet(Struct, frozen=True, eq=False):
    """An immutable set of offsets. Takes at most a bit for each offset of its span."""

    start: int  # the smallest member
    _count: int
    _bits: np.ndarray | None  # of [start, …), eight a byte, lowest first
    _listed: np.ndarray | None  # ascending int64, where that is smaller

    @classmethod
    def of(cls, offsets: pa.Array | np.ndarray | Iterable[int]) -> OffsetSet:
        """From offsets in any order, which may repeat."""
        array = _ascending(_int64(offsets))
        count = len(array)
        if not count:
            return cls(0, 0, None, array)
        start, last = int(array[0]), int(array[-1])
        if last - start >= count * _BITS_A_LISTED_OFFSET:
            return cls(start, count, None, array)
        members = np.zeros(last - start + 1, np.bool_)
        members[array - start] = True
        return cls(start, count, np.packbits(members, bitorder="little"), None)

    @classmethod
    def union(cls, sets: Iterable[OffsetSet]) -> OffsetSet:
        """The members of all of the sets."""
        filled = [one for one in sets if len(one)]
        if len(filled) == 1:
            return filled[0]
        empty = np.empty(0, np.int64)
        return cls.of(np.concatenate([empty, *(one.to_numpy() for one in filled)]))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self.to_numpy().tolist())

    def to_numpy(self) -> np.ndarray:
        """The members, ascending."""
        if self._bits is None:
            assert self._listed is not None
            return self._listed
        return np.flatnonzero(np.unpackbits(self._bits, bitorder="little")) + self.start

    def contains(self, offsets: pa.Array) -> pa.Array:
        """Which of them are members: a boolean for each, in their order."""
        return pa.array(self.mask(_int64(offsets)))

    def mask(self, offsets: np.ndarray) -> np.ndarray:
        """As `contains`, for int64 offsets."""
        if self._bits is None:
            assert self._listed is not None
            if not self._count:
                return np.zeros(len(offsets), np.bool_)
            at = np.searchsorted(self._listed, offsets)
            at[at == self._count] = 0
            return np.asarray(self._listed[at] == offsets)
        place = offsets - self.start
        inside = (place >= 0) & (place < 8 * len(self._bits))
        place = np.where(inside, place, 0)
        found = (self._bits[place >> 3] >> (place & 7).astype(np.uint8)) & 1
        return np.asarray(inside & found.astype(np.bool_))


def _ascending(array: np.ndarray) -> np.ndarray:
    """Sorted, without repeats. Most come so, which is only checked (`np.unique` hashes)."""
    if np.all(array[1:] > array[:-1]):
        return array
    array = np.sort(array)
    return np.asarray(array[np.concatenate([[True], array[1:] != array[:-1]])])


def _int64(offsets: pa.Array | np.ndarray | Iterable[int]) -> np.ndarray:
    if isinstance(offsets, np.ndarray):
        return offsets
    if isinstance(offsets, (pa.Array, pa.ChunkedArray)):
        return np.asarray(offsets.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
    return np.fromiter(offsets, np.int64)

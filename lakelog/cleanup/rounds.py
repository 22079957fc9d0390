"""Rewrites in rounds, each of which is committed by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.batched import batched
from ..cold.change import Rewrite
from .optimize import size_bytes

#: One commit rewrites about this much: a crash loses no more work than that.
COMMIT_BYTES = 4 * 2**30


def rounds(rewrites: Sequence[Rewrite]) -> Iterator[list[Rewrite]]:
    """The rewrites in their order, as many together as make up `COMMIT_BYTES`; at least one."""
    return batched(rewrites, size_bytes, COMMIT_BYTES)

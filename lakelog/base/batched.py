"""Batches of what is worked on together: as much as a bound allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batched(values: Iterable[T], size_of: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """The values in their order, as many together as make up `most`; at least one."""
    together: list[T] = []
    total = 0
    for value in values:
        size = size_of(value)
        if together and total + size > most:
            yield together
            together, total = [], 0
        together.append(value)
        total += size
    if together:
        yield together

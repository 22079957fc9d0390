"""Small pieces of work share a task of Spark, which costs some 30 ms, and they one or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from ..values.config import MIB

#: What small pieces are put together to, and how many at most.
SHARED_BYTES = 4 * MIB
SHARED_RANGES = 80


class Sized(Protocol):
    """A piece of work."""

    @property
    def size_bytes(self) -> float:
        """About how many bytes it reads."""
        ...


T = TypeVar("T", bound=Sized)


def sharing(pieces: Iterable[T], most: int = SHARED_RANGES) -> list[list[T]]:
    """The pieces of each task, in their order: small ones that follow each other share one.

    Told by the pieces alone, so that the same ones are dealt out in the same way each time.

    Args:
        most: pieces that one task gets.
    """
    tasks: list[list[T]] = []
    size_bytes = 0.0
    for piece in pieces:
        size_bytes += piece.size_bytes
        if tasks and len(tasks[-1]) < most and size_bytes <= SHARED_BYTES:
            tasks[-1].append(piece)
        else:
            tasks.append([piece])
            size_bytes = piece.size_bytes
    return tasks

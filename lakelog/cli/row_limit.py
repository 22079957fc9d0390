"""``--max``: so many rows, and no more is read for them than it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from ..errors import InvalidArgumentError


class Rows(Protocol):
    """A table or a batch of Arrow's."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int) -> Rows: ...


R = TypeVar("R", bound=Rows)


class RowLimit:
    """How many rows are still wanted, of one table after the other.

    Args:
        most: None: all.

    Raises:
        InvalidArgumentError: a count that is none.
    """

    def __init__(self, most: int | None) -> None:
        if most is not None and most < 0:
            raise InvalidArgumentError(f"--max {most} is negative")
        self._left = most

    def limited(self, tables: Iterable[R]) -> Iterator[R]:
        """The tables as far as they are wanted; none is asked for once there are enough."""
        if self._left == 0:
            return
        for table in tables:
            if self._left is None:
                yield table
                continue
            wanted = table.slice(0, self._left)
            self._left -= wanted.num_rows
            yield wanted  # type: ignore[misc]  # a slice of a table is one
            if self._left == 0:
                return

"""Foreign values in lakelog's own keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import ForeignEntryError

#: Errors of reading a value that is not what it should be.
ILLEGIBLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError)


@contextmanager
def foreign_if_illegible(found: Any, what: str) -> Iterator[None]:
    """Turns errors of reading ``found`` within the block into `ForeignEntryError`.

    Args:
        what: what it should be, such as "definition of a topic".

    Raises:
        ForeignEntryError: it cannot be read.
    """
    try:
        yield
    except ILLEGIBLE as error:
        raise illegible(found, what, error) from error


def illegible(found: Any, what: str, error: Exception) -> ForeignEntryError:
    """The error for ``found``, which is no ``what``."""
    shown = repr(found)
    shown = shown if len(shown) <= 100 else f"{shown[:100]}…"
    why = repr(error)
    return ForeignEntryError(
        f"{shown} is no {what} ({why if len(why) <= 200 else why[:200] + '…'}); somebody else "
        "writes to the keyspace, or a newer lakelog does"
    )

"""Which status table a cold root has: `PathStatusTable` or `NamedStatusTable`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from ..errors import InvalidArgumentError
from ..place import ColdRoot, PathRoot
from ..place.by_name import NamedRoot
from ..spark.session import session
from .named_status_table import NamedStatusTable, register_status
from .path_status_table import PathStatusTable
from .status_table import StatusTable


def open_status_table(
    root: ColdRoot | None,
    naming: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> StatusTable:
    """The status table of a cold root.

    Args:
        naming: see `LogPlace.naming_status`.

    Raises:
        InvalidArgumentError: there is none.
    """
    if root is None:
        raise InvalidArgumentError(
            "a job records where things stand in a table under the cold root, but no cold root is "
            "given; give cold"
        )
    if isinstance(root, NamedRoot):
        return NamedStatusTable(root.schema, root.spark, naming)
    assert isinstance(root, PathRoot)  # there are no others
    schema = root.schema
    if schema is None:
        return PathStatusTable(root.storage, making=naming)

    def register(path: str) -> None:
        with naming():
            register_status(session(), schema, path)

    return PathStatusTable(root.storage, after_create=register, making=naming)

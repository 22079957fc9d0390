"""Which table of groups a cold root has: `PathGroupsTable` or `NamedGroupsTable`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from ...place import ColdRoot, PathRoot
from ...place.by_name import NamedRoot
from .groups_table import GroupsTable
from .named_table import NamedGroupsTable
from .path_table import PathGroupsTable


def open_groups_table(
    root: ColdRoot, naming: Callable[[], AbstractContextManager[None]] = nullcontext
) -> GroupsTable:
    """The table of groups of a cold root.

    Args:
        naming: held while the table is made; see `LogPlace.naming_status`.
    """
    if isinstance(root, NamedRoot):
        return NamedGroupsTable(root.schema, root.spark, naming)
    assert isinstance(root, PathRoot)  # there are no others
    return PathGroupsTable(root.storage, naming)

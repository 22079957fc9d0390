"""A small Delta table of lakelog's own in a cold root, beside those of topics.

`by_path.root_table` and `by_name.root_table` have the two kinds, which differ only in how a table
is opened, read and written.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from msgspec import Struct, field

from ..base.back_off import BackOff, Tries
from ..base.text_table import counted
from ..errors import ColdTierAccessError, ColdTierError, ColdTierFullError, ForeignTableError
from ..values.format_version import check_format
from .properties import FORMAT_PROPERTY
from .store_errors import one_line

#: The column that says when a row was recorded. Every such table has it.
TIME = "recorded_at"

#: Each lost race has a winner, and whoever writes does so a few times a minute at most.
COMMITS = BackOff(0.1, 1.0, tries=10)

#: What another attempt would meet as well.
_NOTHING_CHANGES = (ColdTierAccessError, ColdTierFullError)

#: No condition: of all rows.
ALL: Mapping[str, object] = MappingProxyType({})


class RootTableDefinition(Struct, frozen=True):
    """What such a table is made as, at a path or in a catalog."""

    name: str  # of its folder, or within its schema
    holds: str  # such as "the rows of job runs"
    schema: pa.Schema
    description: str
    properties: Mapping[str, str]
    unharmed: str  # what is so although a commit failed, as a sentence without its full stop
    partition_by: Sequence[str] = ()
    #: Columns that rows are chosen by, never null; files at a path have statistics of them.
    chosen_by: Sequence[str] = ()
    #: What a table may lack that an older lakelog made; the next rows bring them.
    later_columns: Sequence[str] = ()
    #: Columns in milliseconds, and what an older lakelog called them, in seconds.
    once_in_seconds: Mapping[str, str] = field(default_factory=dict)
    #: Whether a table at a path has its name in the schema of a root that has one.
    has_name: bool = False

    def check(
        self,
        where: str,
        properties: Mapping[str, str | None],
        columns: Iterable[str],
        name: str | None = None,
    ) -> None:
        """Refuses a table that is there and is another one.

        Args:
            where: its path, or its name.
            name: in the catalog, if that is where it is.

        Raises:
            NewerVersionError: a newer lakelog made it.
            ForeignTableError: somebody else did.
        """
        check_format(properties.get(FORMAT_PROPERTY), name or f"the table at {where}", path=where)
        missing = set(self.schema.names).difference(columns, self.later_columns)
        if missing:
            raise ForeignTableError(
                f"{where} should hold {self.holds}, but has no column {min(missing)!r}: another "
                "version of lakelog, or somebody else, made it. Move it away",
                path=where,
                name=name,
            )


class Txn(Struct, frozen=True):
    """What a commit carries as a Delta transaction, so that it is made once."""

    app_id: str
    version: int


class RootTable(ABC):
    """Reads the table, and writes to it; the first rows create it.

    Args:
        where: its path, or its name.
        making: held while it is made; it refuses where it must not be.
    """

    def __init__(
        self,
        definition: RootTableDefinition,
        where: str,
        making: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.definition = definition
        self.where = where
        self._making = making

    @abstractmethod
    def read(
        self,
        of: Mapping[str, object] = ALL,
        *,
        since: datetime | None = None,
        txn: str | None = None,
    ) -> pa.Table:
        """The rows that have these values, in the definition's schema; none without a table.

        Args:
            of: values by column: of those that rows are chosen by, or parted by, or True.
            since: only rows recorded at or after that time.
            txn: the app id of the commit that wrote them. If there was none, and the table tells
                that, no row is read.

        Raises:
            CorruptRecordError, ColdTierError: the table is somebody else's, or cannot be read.
        """

    def append(
        self, rows: pa.Table, is_settled: Callable[[bool], bool], txn: Txn | None = None
    ) -> bool:
        """Commits rows, once.

        Args:
            is_settled: asked before each attempt whether there is nothing to write any more, and
                told whether one has failed: a lost reply and a lost race look the same.

        Returns:
            True: these rows were written. False: what the table has now is there in their place,
            or it cannot be told which of the two.

        Raises:
            ColdTierError: the table takes no commit.
        """
        return self._commit(lambda table: self._append(table, rows, txn), is_settled)

    def replace(
        self,
        rows: pa.Table,
        of: Mapping[str, object],
        is_settled: Callable[[bool], bool],
        txn: Txn,
    ) -> bool:
        """As `append`, in the place of the rows that have these values."""
        return self._commit(lambda table: self._replace(table, rows, of, txn), is_settled)

    @abstractmethod
    def tidy(self, kept: timedelta | None = None, merged_files: int = 0) -> None:
        """Deletes the files that no reader needs. A failure is logged: nothing depends on it.

        Args:
            kept: older rows go, at most a day later, and then files are merged.
            merged_files: with `kept`, files are merged also if there are so many; with fewer,
                nothing is done.
        """

    # -- how -----------------------------------------------------------------------------------

    def _commit(self, write: Callable[[Any], bool], is_settled: Callable[[bool], bool]) -> bool:
        tries = Tries(f"writing to {self}", COMMITS)
        while True:
            # Opened before the look, so that what others commit after the look is a conflict.
            table = self._create()
            if is_settled(tries.failures > 0):
                return False
            try:
                return write(table)
            except ColdTierError as error:
                is_final = isinstance(error, _NOTHING_CHANGES)
                pause_s = None if is_final else tries.failed(error)
                if pause_s is None:
                    attempts = counted(tries.failures + is_final, "attempt")
                    raise error.changed(
                        message=f"{self} took no commit in {attempts}: {one_line(error)}. "
                        f"{self.definition.unharmed}",
                        path=self.where,
                    ) from error
            time.sleep(pause_s)

    @abstractmethod
    def _create(self) -> Any:
        """The table as it is now, as its kind opens it; made first if it is not there.

        Raises:
            ForeignTableError, NewerVersionError, ColdTierError: it is not ours, or cannot be made.
        """

    @abstractmethod
    def _append(self, table: Any, rows: pa.Table, txn: Txn | None) -> bool:
        """One attempt; see `append`."""

    @abstractmethod
    def _replace(self, table: Any, rows: pa.Table, of: Mapping[str, object], txn: Txn) -> bool:
        """One attempt; see `replace`."""

"""A small Delta table of lakelog's own in a cold root, beside those of topics, by delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ...errors import ColdTierError, ForeignTableError
from ..root_table import RootTableDefinition
from ..store.storage import Storage
from ..store_errors import error_class, one_line


class RootTable:
    """Opens it, makes it, and says what fails.

    Args:
        check: refuses a table that is there and is another one, by raising.
        making: held while it is made; it refuses where it must not be.
    """

    def __init__(
        self,
        storage: Storage,
        definition: RootTableDefinition,
        check: Callable[[DeltaTable], None],
        making: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._definition = definition
        self._check = check
        self._making = making
        self.path = f"{storage.root.rstrip('/')}/{definition.name}"
        self.storage = storage.keyed_for(self.path)

    def open(self) -> DeltaTable | None:
        """The table as it is now; None if there is none.

        Raises:
            ForeignTableError, NewerVersionError: see `check`.
            ColdTierError: the store does not answer, or refuses.
        """
        try:
            table = DeltaTable(self.path, storage_options=self.storage.delta_options())
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise self._refused(f"the table at {self.path} cannot be opened", error) from error
        self._check(table)
        return table

    def create(self) -> DeltaTable:
        """The table as it is now; made first if it is not there.

        Raises:
            ForeignTableError, NewerVersionError, ColdTierError: see `open`.
        """
        table = self.open()
        if table is not None:
            return table
        there = self.storage.names(self.path)
        if any(not name.startswith(("_", ".")) for name in there):
            table = self.open()  # somebody else may have been faster
            if table is not None:
                return table
            raise ForeignTableError(
                f"{self.path} is the place of {self._definition.holds}, and something else lies "
                "there. Move it away",
                path=self.path,
            )
        with self._making():
            self._make()
        table = self.open()
        assert table is not None  # it was just made
        return table

    def _make(self) -> None:
        self.storage.make_folder(self.path)
        try:
            DeltaTable.create(
                self.path,
                self._definition.schema,
                mode="ignore",
                partition_by=list(self._definition.partition_by),
                name=self._definition.name,
                description=self._definition.description,
                configuration=dict(self._definition.properties),
                # Properties may be Delta's own, but newer than those delta-rs knows.
                raise_if_key_not_exists=False,
                storage_options=self.storage.delta_options(),
            )
        except (DeltaError, OSError) as error:
            if self.open() is None:  # nobody else was faster
                made = f"no Delta table could be made at {self.path}"
                raise self._refused(made, error) from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Says what fails within."""
        with self.storage.naming(self.path):
            try:
                yield
            except DeltaError as error:
                raise self._refused(f"the table at {self.path} cannot be read", error) from error

    def _refused(self, what: str, error: Exception) -> ColdTierError:
        said = one_line(error)
        return error_class(said)(f"{what}: {said}. {self.storage.advice()}", path=self.path)

    def missing(self, table: DeltaTable) -> set[str]:
        """Columns that it should have."""
        return set(self._definition.schema.names) - {field.name for field in table.schema().fields}

"""Where the cold tier of a log lies: under a path, or in a schema of a catalog, or both.

| cold             | location | tables                                                           |
|------------------|----------|------------------------------------------------------------------|
| a path or URL    |          | at paths: `PathTable`                                            |
| `catalog.schema` |          | the catalog's own (managed), by name: `NamedTable`               |
| `catalog.schema` | a path   | at paths, each known to the catalog by its name besides          |

Two names with a dot and without a slash are a schema; a folder of such a name is ``./a.b``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidArgumentError
from .storage import Storage

#: ``catalog.schema``.
SCHEMA = re.compile(r"([^.`\s/\\:]+)\.([^.`\s/\\:]+)")


@dataclass(frozen=True, slots=True)
class ColdPlace:
    """What ``cold=…, location=…`` say. Picklable."""

    storage: Storage | None = None  # where files are written by path
    schema: str | None = None  # catalog.schema

    @classmethod
    def of(
        cls,
        cold: str | Path | None,
        location: str | Path | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> ColdPlace:
        """See the module.

        Raises:
            InvalidArgumentError: a location, or storage options, that go with nothing.
            ColdTierError: no place that a Delta commit can be made in.
        """
        by_name = isinstance(cold, str) and SCHEMA.fullmatch(cold) is not None
        if location is not None and not by_name:
            raise InvalidArgumentError(
                f"location={str(location)!r} goes with cold='catalog.schema', not with "
                f"{cold!r}: it says where the schema's tables lie"
            )
        path = location if by_name else cold
        if path is None:
            if storage_options:
                raise InvalidArgumentError(
                    "storage options open an object store, and none is named"
                )
            return cls(None, str(cold) if by_name else None)
        return cls(Storage(str(path), storage_options), str(cold) if by_name else None)

    @property
    def is_by_name(self) -> bool:
        """Whether only Spark may touch the tables."""
        return self.storage is None and self.schema is not None

    def __bool__(self) -> bool:
        return self.storage is not None or self.schema is not None

    def __str__(self) -> str:
        if self.storage is None:
            return self.schema or "no cold tier"
        return self.storage.root if self.schema is None else f"{self.schema} at {self.storage.root}"

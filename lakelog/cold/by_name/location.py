"""Where a catalog's table lies, how far it goes, and what opens it, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

from msgspec import Struct

from ...base.local_path import OBJECT_STORES, OTHER_NAMES
from ...errors import ColdTierRefusedError, InvalidArgumentError
from ..store.storage import Storage
from ..store.unity_catalog import UnityCatalog
from ..store.vended_credentials import TableKeys
from .delta_actions import NotDirectError
from .names import TableName
from .table_log import Newest


class Located(Struct, frozen=True):
    """A table as its catalog says it now."""

    storage: Storage
    newest: Newest
    table_id: str | None  # the catalog's own; None: it says none
    is_there: bool = True  # as a catalog says; False: if it has a log there


class Location(Protocol):
    """Finds one table. A value, for tasks too."""

    def find(self) -> Located | None:
        """Where it is; None if there is no such table.

        Raises:
            NotDirectError: nobody but Spark gets there.
            ColdTierError: the catalog does not answer, or refuses.
        """
        ...

    def forget(self) -> None:
        """Ask anew the next time: it is not where it was."""
        ...


class UnityLocation(Struct, frozen=True):
    """A table of a Unity Catalog, by its REST API.

    Source: Unity Catalog 0.6, ``delta/v1``: it names the commits that are not published yet.
    """

    catalog: UnityCatalog
    name: TableName

    def find(self) -> Located | None:
        """See `Location.find`."""
        versions = self._versions()
        if versions is None:
            said = self._by_name_alone()
            if said is None:
                return None
            if not _is_managed(said):
                return self._as_it_lies(said)
            versions = self._versions()  # it may have been made between the two questions
        if versions is None:
            raise NotDirectError("the catalog commits to it and does not tell the newest version")
        return self._at_version(versions)

    def forget(self) -> None:
        """See `Location.forget`: nothing is remembered."""

    def _versions(self) -> Mapping[str, Any] | None:
        """What the catalog says of the table and its newest commits."""
        one, two, three = (quote(part, safe="") for part in self.name)
        path = f"/delta/v1/catalogs/{one}/schemas/{two}/tables/{three}"
        said: Mapping[str, Any] | None = self.catalog.ask("GET", path)
        return said

    def _by_name_alone(self) -> Mapping[str, Any] | None:
        """What a catalog says of the table that tells no versions, or none of this table."""
        name = ".".join(quote(part, safe="") for part in self.name)
        said: Mapping[str, Any] | None = self.catalog.ask("GET", f"/tables/{name}")
        return said

    def _at_version(self, said: Mapping[str, Any]) -> Located:
        try:
            metadata = said["metadata"]
            latest = said.get("latest-table-version")
            staged = {
                int(commit["version"]): str(commit["file-name"])
                for commit in said.get("commits") or ()
            }
            version = None if latest is None or int(latest) < 0 else int(latest)
            return self._located(
                str(metadata["location"]), str(metadata["table-uuid"]), Newest(version, staged)
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotDirectError(
                f"the catalog says in other words where it is ({error})"
            ) from error

    def _as_it_lies(self, said: Mapping[str, Any]) -> Located:
        """Good for tables whose commits are files alone."""
        return self._located(str(said["storage_location"]), str(said["table_id"]), Newest())

    def _located(self, location: str, table_id: str, newest: Newest) -> Located:
        keys = TableKeys(self.catalog, table_id, str(self.name))
        return Located(_storage(location, keys), newest, table_id)


def _is_managed(said: Mapping[str, Any]) -> bool:
    """Whether the catalog makes the table's commits."""
    properties = said.get("properties") or {}
    return any("catalogManaged" in name or "catalogOwned" in name for name in properties)


class PlainLocation(Struct, frozen=True):
    """A table of which no more is known than its path.

    Args:
        path: None if there is no such table.
        is_there: as a metastore says; False: if it has a log there.
    """

    path: str | None
    is_there: bool = True

    def find(self) -> Located | None:
        """See `Location.find`."""
        if self.path is None:
            return None
        return Located(_storage(self.path, None), Newest(), None, self.is_there)

    def forget(self) -> None:
        """See `Location.forget`: it has no other."""


def _storage(location: str, keys: TableKeys | None) -> Storage:
    # As `Storage` names places: without Hadoop's own scheme, nor a slash at its end.
    scheme, separator, rest = location.rstrip("/").partition(":/")
    location = f"{OTHER_NAMES.get(scheme, scheme)}{separator}{rest}"
    remote = location.partition("://")[0] in OBJECT_STORES
    try:
        if keys is not None and remote:
            return Storage(location, {"CREDENTIALS": "unity-catalog"}, keys)
        storage = Storage(location)
        known = not remote or storage.store_options.resolved()
    except (ColdTierRefusedError, InvalidArgumentError) as error:
        raise NotDirectError(f"it lies at {location}, which only Spark opens") from error
    if not known:
        raise NotDirectError(f"it lies at {location}, and the environment has no keys for that")
    return storage

"""Where a catalog's tables lie, how far they go, and what opens them without Spark's reader.

That goes by what this process knows:

| known here                                                   | who says where tables lie        |
|--------------------------------------------------------------|----------------------------------|
| ``tablesAt``, an option of ``format("lakelog")``             | the Unity Catalog at that URL;   |
|                                                              | or they lie in that folder       |
| ``UNITY_CATALOG_URL`` (and ``UNITY_CATALOG_TOKEN``)          | that Unity Catalog               |
| a Databricks runtime, or a login in ``DATABRICKS_HOST``      | the workspace's Unity Catalog    |
| a Spark whose conf has ``spark.sql.catalog.{catalog}.uri``   | the Unity Catalog of that conf   |
| another Spark                                                | its metastore                    |

Tasks of Spark, and what plans them, have no session: a process that knows nothing of all that goes
by what it was handed on, and by the log's own files for what was committed since.

The catalogs ``spark_catalog`` and ``hive_metastore`` are a Spark's own.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from ...base.local_path import OBJECT_STORES, OTHER_NAMES
from ...errors import ColdTierError, ColdTierRefusedError, InvalidArgumentError, MissingExtraError
from ..store.storage import Storage
from ..store.unity_catalog import URL_VARIABLE, TableKeys, UnityCatalog
from ..store_errors import one_line
from .delta_actions import NotDirectError
from .names import TableName
from .table_log import Newest, TableLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

OF_SPARK = frozenset({"spark_catalog", "hive_metastore"})


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
        said = self._versions()
        if said is None:
            named = self._by_name_alone()
            if named is None:
                return None
            if not _is_managed(named):  # its commits are files alone
                location, table_id = str(named["storage_location"]), str(named["table_id"])
                return self._located(location, table_id, Newest())
            said = self._versions()  # it may have been made between the two questions
        if said is None:
            raise NotDirectError("the catalog commits to it and does not tell the newest version")
        try:
            metadata = said["metadata"]
            latest = said.get("latest-table-version")
            staged = {
                int(commit["version"]): str(commit["file-name"])
                for commit in said.get("commits") or ()
            }
            version = None if latest is None or int(latest) < 0 else int(latest)
            location, table_id = str(metadata["location"]), str(metadata["table-uuid"])
            return self._located(location, table_id, Newest(version, staged))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotDirectError(
                f"the catalog says in other words where it is ({error})"
            ) from error

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


def known_catalog(catalog: str) -> UnityCatalog | None:
    """The Unity Catalog that this process reaches without a Spark; None if it knows none."""
    if catalog in OF_SPARK:
        return None
    if url := os.environ.get(URL_VARIABLE):
        return UnityCatalog(url)
    if "DATABRICKS_RUNTIME_VERSION" in os.environ or "DATABRICKS_HOST" in os.environ:
        return UnityCatalog()
    return None


def catalog_of(spark: SparkSession, catalog: str) -> UnityCatalog | None:
    """The Unity Catalog that a session reaches under a name; None if it is another kind."""
    said = {
        part: spark.conf.get(f"spark.sql.catalog.{catalog}{part}", None)
        for part in ("", ".uri", ".token")
    }
    if "unitycatalog" not in str(said[""]) or not said[".uri"]:
        return None
    return UnityCatalog(str(said[".uri"]), said[".token"])


HandedOn = tuple[tuple[TableName, Located], ...]
"""Tables as a planner found them, with keys that open them: a secret, for pickles alone."""


def to_hand_on(locations: Iterable[TableLocation]) -> HandedOn:
    """What lets tasks read these tables where nobody is logged in.

    What cannot be found now is left out: a task may have no need of it, or says so itself.
    """
    found = []
    for one in locations:
        try:
            located = one.find()
            if located is not None:
                located.storage.to_hand_on()  # so that its pickle has keys that last
                found.append((one.name, located))
        except (NotDirectError, ColdTierError, MissingExtraError) as error:
            logger.debug("tasks get no way to read %s where it lies: %s", one.name, error)
    return tuple(found)


def why_not_directly(location: TableLocation) -> str:
    """Why a table cannot be read where it lies, as far as a look at it tells; empty if it can."""
    try:
        located = location.find()
        if located is not None:
            TableLog(located.storage).refresh(located.newest)
    except (NotDirectError, ColdTierError, MissingExtraError) as error:
        return one_line(error)
    return ""


def take(handed_on: HandedOn) -> None:
    """Find tables in this process by what another one handed on."""
    _HANDED_ON.update(dict(handed_on))


_HANDED_ON: dict[TableName, Located] = {}


@dataclass(slots=True)
class TableLocation:
    """See `Location`. Finds out at its first use who is to be asked. Not thread-safe.

    Args:
        spark: gives the session; None where there is none.
        tables_at: the URL of a catalog, or a folder that has the tables; None: see above.
    """

    name: TableName
    spark: Callable[[], SparkSession] | None
    tables_at: str | None = None
    _of: UnityLocation | PlainLocation | None = field(default=None, init=False)

    def find(self) -> Located | None:
        handed_on = None if self.spark is not None else _HANDED_ON.get(self.name)
        try:
            if self._of is None:
                self._of = self._known()
            return self._of.find()
        except (NotDirectError, ColdTierError, MissingExtraError):
            if handed_on is None:
                raise
            return replace(handed_on, newest=Newest(None, handed_on.newest.staged))

    def forget(self) -> None:
        self._of = None

    def _known(self) -> UnityLocation | PlainLocation:
        if self.tables_at is not None:
            if re.match("https?://", self.tables_at):
                return UnityLocation(UnityCatalog(self.tables_at), self.name)
            return PlainLocation(f"{self.tables_at.rstrip('/')}/{self.name.table}", is_there=False)
        catalog = known_catalog(self.name.catalog)
        if catalog is None and self.spark is not None:
            catalog = catalog_of(self.spark(), self.name.catalog)
        if catalog is not None:
            return UnityLocation(catalog, self.name)
        if self.spark is None:
            raise NotDirectError(
                f"nothing here says where the tables of {self.name.catalog} lie: set "
                f"{URL_VARIABLE} in the environment if it is a Unity Catalog, or the option "
                "tablesAt of a reader"
            )
        return PlainLocation(self._path(self.spark()))

    def _path(self, spark: SparkSession) -> str | None:
        if not spark.catalog.tableExists(str(self.name)):
            return None
        (row,) = spark.sql(f"DESCRIBE DETAIL {self.name}").collect()
        if row["format"] != "delta":
            raise NotDirectError(f"it is no Delta table but one of format {row['format']}")
        return str(row["location"])

"""Credentials that Unity Catalog gives for a place: short-lived, so renewed in time.

| `Keys`      | for                               | the caller needs                            |
|-------------|-----------------------------------|---------------------------------------------|
| `PathKeys`  | a path of an external location    | EXTERNAL USE LOCATION on the location; for  |
|             |                                   | a registered table, EXTERNAL USE SCHEMA too |
| `TableKeys` | a table of a catalog, to read it; | SELECT, and EXTERNAL USE SCHEMA;            |
|             | or to write it too                | MODIFY besides                              |

And a login, see `unity_catalog`. Executors often have none. The driver's credentials travel to them
in pickles, never as text, and have some life left when they go to a process that cannot renew them.

Source: REST APIs ``temporary-path-credentials``, ``temporary-table-credentials``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...errors import ColdTierAccessError, ColdTierError, MissingExtraError
from .unity_catalog import UnityCatalog

logger = logging.getLogger(__name__)

#: They live about an hour. A file that was begun with them must be finished before they end.
RENEW_BEFORE_MS = 15 * 60_000

#: Tasks and frames keep what they are given, so it must last half an hour at least.
HAND_ON_BEFORE_MS = 30 * 60_000

#: Those held must last this long to be of any use when no new ones can be had.
USELESS_BEFORE_MS = 60_000

#: Of a place that needs none, such as a folder.
NEVER_MS = 2**63 - 1


@dataclass(frozen=True, slots=True, repr=False)
class Vended:
    """Credentials; never shown."""

    values: tuple[tuple[str, str], ...]
    expires_ms: int

    def lasts_ms(self) -> int:
        return self.expires_ms - time.time_ns() // 1_000_000

    def __repr__(self) -> str:
        return f"Vended(expires_ms={self.expires_ms})"


class Keys:
    """What credentials are for. A value: hashable, and it can be pickled. Its text is the place."""

    __slots__ = ()

    catalog: UnityCatalog
    API: ClassVar[str]
    ADVICE: ClassVar[str]  # if the catalog gives none; a sentence without its full stop

    def request(self) -> dict[str, str]:
        """What is asked of the API."""
        raise NotImplementedError

    def ask(self) -> Vended:
        """New ones.

        Raises:
            ColdTierError: the catalog gives none.
            MissingExtraError: the login needs databricks-sdk.
        """
        try:
            answer = self.catalog.ask("POST", f"/{self.API}", self.request())
            if answer is None:
                raise ColdTierAccessError("it knows no such place")
            return _vended(answer)
        except MissingExtraError as missing:
            raise MissingExtraError(f"CREDENTIALS=unity-catalog: {missing.message}") from missing
        except (ColdTierError, ValueError, KeyError, TypeError, AttributeError) as error:
            said = error.message if isinstance(error, ColdTierError) else str(error)
            kind = type(error) if isinstance(error, ColdTierError) else ColdTierAccessError
            raise kind(
                f"Unity Catalog gives no credentials for {self}: {said}. {self.ADVICE}",
                path=str(self),
            ) from error


@dataclass(frozen=True, slots=True)
class PathKeys(Keys):
    """Those that read and write a path.

    Args:
        url: of the path. Unity Catalog gives none for one above a table that it knows.
    """

    url: str
    catalog: UnityCatalog = field(default=UnityCatalog(), compare=False)

    API: ClassVar[str] = "temporary-path-credentials"
    ADVICE: ClassVar[str] = (
        "Check that an external location covers it, that you have EXTERNAL USE LOCATION on it "
        "(if a table is registered there already, EXTERNAL USE SCHEMA on its schema too), that "
        "no table is registered below it, and that this process is logged in to the workspace"
    )

    def request(self) -> dict[str, str]:
        return {"url": self.url, "operation": "PATH_READ_WRITE"}

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class TableKeys(Keys):
    """Those that read a catalog's table.

    Args:
        table_id: the catalog's own.
        name: of the table, for errors.
    """

    catalog: UnityCatalog
    table_id: str
    name: str = field(compare=False)

    API: ClassVar[str] = "temporary-table-credentials"
    ADVICE: ClassVar[str] = (
        "Check that you have SELECT on it and EXTERNAL USE SCHEMA on its schema, and that the "
        "metastore allows external data access"
    )

    def request(self) -> dict[str, str]:
        return {"table_id": self.table_id, "operation": "READ"}

    def __str__(self) -> str:
        return self.name


def vended(keys: Keys, lasting_ms: int = RENEW_BEFORE_MS) -> Vended:
    """Credentials for some more minutes; new ones if the last are running out.

    Args:
        lasting_ms: how long they should last at least.

    Raises:
        ColdTierError: the catalog gives none, and those held are running out.
        MissingExtraError: databricks-sdk is not installed.

    Runs on: driver|executor.
    """
    with _LOCK:
        held = _HELD.get(keys)
        if held is None or held.lasts_ms() < lasting_ms:
            try:
                held = _HELD[keys] = keys.ask()
            except (ColdTierError, MissingExtraError) as error:
                if held is None or held.lasts_ms() < USELESS_BEFORE_MS:
                    raise
                logger.warning(
                    "the credentials of %s could not be renewed, and end in %d s: %s",
                    keys,
                    held.lasts_ms() // 1000,
                    error,
                )
        return held


def held_for(keys: Keys) -> Vended | None:
    """The credentials that this process holds, to be handed on."""
    with _LOCK:
        return _HELD.get(keys)


def drop(keys: Keys) -> None:
    """Ask for new ones the next time, as the store refuses those held."""
    with _LOCK:
        _HELD.pop(keys, None)


def hold(keys: Keys, vended: Vended) -> None:
    """Keep credentials that were handed on, if they last longer than those held."""
    with _LOCK:
        mine = _HELD.get(keys)
        if mine is None or mine.expires_ms < vended.expires_ms:
            _HELD[keys] = vended


def _vended(answer: Mapping[str, Any]) -> Vended:
    expires_ms = answer.get("expiration_time")
    given = {name: value for name, value in answer.items() if value is not None}
    if aws := given.get("aws_temp_credentials"):
        values = {
            "AWS_ACCESS_KEY_ID": aws["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": aws["secret_access_key"],
            "AWS_SESSION_TOKEN": aws["session_token"],
        }
    elif azure := given.get("azure_user_delegation_sas"):
        values = {"AZURE_STORAGE_SAS_TOKEN": azure["sas_token"]}
    elif str(given.get("url", "")).startswith("file:"):
        values = {}
    else:
        kinds = ", ".join(sorted(given.keys() - {"expiration_time", "url"})) or "nothing"
        raise ValueError(f"it answered with {kinds}, not with keys of S3 or a SAS of Azure")
    return Vended(tuple(values.items()), NEVER_MS if expires_ms is None else int(expires_ms))


_HELD: dict[Keys, Vended] = {}
_LOCK = threading.Lock()

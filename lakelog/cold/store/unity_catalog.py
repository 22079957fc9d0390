"""A Unity Catalog's REST API, and the short-lived credentials that it gives for a place.

| who is asked             | with what                                                        |
|--------------------------|------------------------------------------------------------------|
| the ``url``              | its token: given, or ``UNITY_CATALOG_TOKEN`` of the environment  |
| without one, a workspace | a login that databricks-sdk finds: a notebook's or job's own, or |
|                          | ``DATABRICKS_HOST`` with a token or a service principal          |

| `Keys`      | for                               | the caller needs                            |
|-------------|-----------------------------------|---------------------------------------------|
| `PathKeys`  | a path of an external location    | EXTERNAL USE LOCATION on the location; for  |
|             |                                   | a registered table, EXTERNAL USE SCHEMA too |
| `TableKeys` | a table of a catalog, to read it; | SELECT, and EXTERNAL USE SCHEMA;            |
|             | or to write it too                | MODIFY besides                              |

Executors often have no login. The driver's credentials travel to them in pickles, never as text,
and have some life left when they go to a process that cannot renew them.

Source: the REST APIs of Databricks and of Unity Catalog 0.6, ``temporary-path-credentials`` and
``temporary-table-credentials`` among them.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from ...errors import (
    ColdTierAccessError,
    ColdTierError,
    ColdTierRefusedError,
    ColdTierUnavailableError,
    MissingExtraError,
)
from ..store_errors import error_class

if TYPE_CHECKING:
    from urllib.error import HTTPError


API = "/api/2.1/unity-catalog"

URL_VARIABLE = "UNITY_CATALOG_URL"
TOKEN_VARIABLE = "UNITY_CATALOG_TOKEN"

#: A catalog answers in milliseconds; whoever asks tries again.
TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class UnityCatalog:
    """A catalog server. Its token is never shown, and travels in no pickle.

    Args:
        url: empty for the workspace that this process is logged in to.
        token: default: the environment's.
    """

    url: str = ""
    token: str | None = field(default=None, repr=False, compare=False)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request; None if there is no such thing.

        Raises:
            ColdTierUnavailableError: it does not answer, or is busy.
            ColdTierAccessError: it refuses: no login, no right.
            ColdTierRefusedError: it cannot do that.
            MissingExtraError: the login needs databricks-sdk.

        Runs on: driver|executor.
        """
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        url, headers = self._login()
        request = Request(
            f"{url}{API}{path}",
            None if body is None else json.dumps(body).encode(),
            {**headers, "Content-Type": "application/json", "User-Agent": "lakelog"},
            method=method,
        )
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            said = _said(error)
            if error.code == 404:
                return None
            refused = error_class(f"status code {error.code}: {said}")
            raise refused(
                f"the catalog at {url} refuses {method} {path} (HTTP {error.code}): {said}"
            ) from error
        except (OSError, HTTPException, ValueError) as error:
            raise ColdTierUnavailableError(
                f"the catalog at {url} does not answer {method} {path}: {error}"
            ) from error

    def tables(self, catalog: str, schema: str) -> Iterator[Mapping[str, Any]]:
        """What the catalog says of each table and view of a schema that the caller may see.

        Raises:
            ColdTierError, MissingExtraError: as for `ask`; there is no such schema.
        """
        wanted = {"catalog_name": catalog, "schema_name": schema}
        token = ""
        while True:
            asked = urlencode({**wanted, **({"page_token": token} if token else {})})
            page = self.ask("GET", f"/tables?{asked}")
            if page is None:
                raise ColdTierRefusedError(
                    f"there is no schema {catalog}.{schema}, or you may not see it. Create it with "
                    "CREATE SCHEMA, or get USE SCHEMA on it",
                    path=f"{catalog}.{schema}",
                )
            yield from page.get("tables") or ()
            token = page.get("next_page_token") or ""
            if not token:
                return

    def _login(self) -> tuple[str, dict[str, str]]:
        if self.url:
            token = self.token or os.environ.get(TOKEN_VARIABLE)
            return self.url.rstrip("/"), {"Authorization": f"Bearer {token}"} if token else {}
        try:
            config = _workspace(*(os.environ.get(name) for name in _LOGIN_VARIABLES))
            return str(config.host).rstrip("/"), dict(config.authenticate())
        except ModuleNotFoundError as missing:
            raise MissingExtraError(
                "a login to a Databricks workspace needs databricks-sdk. Install it with: "
                "pip install 'lakelog[databricks]'"
            ) from missing
        except Exception as error:  # the SDK's errors have no common base
            said = " ".join(str(error).split()) or type(error).__name__
            raise _no_login(said) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return UnityCatalog, (self.url,)


#: What may change while a process runs, and says another login.
_LOGIN_VARIABLES = ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE")


@functools.lru_cache(maxsize=8)
def _workspace(*_: str | None) -> Any:
    """The login that databricks-sdk finds. It costs requests, so it is kept; it renews itself."""
    from databricks.sdk.core import Config

    return Config()


def _no_login(said: str) -> ColdTierError:
    return error_class(said)(f"this process is logged in to no Databricks workspace: {said}")


def _said(error: HTTPError) -> str:
    """What the server says, without its stack."""
    from http.client import HTTPException

    try:
        content = json.loads(error.read())
        return str(content.get("message") or content.get("error_code"))[:500]
    except (OSError, HTTPException, ValueError, AttributeError):
        return str(error.reason)


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

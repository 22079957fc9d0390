"""A Unity Catalog's REST API: where a table lies, how far it goes, keys that open it.

| who is asked             | with what                                                        |
|--------------------------|------------------------------------------------------------------|
| the ``url``              | its token: given, or ``UNITY_CATALOG_TOKEN`` of the environment  |
| without one, a workspace | a login that databricks-sdk finds: a notebook's or job's own, or |
|                          | ``DATABRICKS_HOST`` with a token or a service principal          |

Source: the REST APIs of Databricks and of Unity Catalog 0.6.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...errors import (
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

"""Credentials that Unity Catalog gives for an external location: short-lived, so renewed in time.

The caller needs EXTERNAL USE LOCATION on the location, and a login that databricks-sdk finds: a
notebook's or job's own, or DATABRICKS_HOST with a token or a service principal. Executors often
have none. The driver's credentials travel to them in pickles, never as text, and have some life
left when they go to a process that cannot renew them.

Source: Databricks REST API, ``temporary-path-credentials``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ColdTierError, MissingExtraError
from ..store_errors import error_class

logger = logging.getLogger(__name__)

#: They live about an hour. A file that was begun with them must be finished before they end.
RENEW_BEFORE_MS = 15 * 60_000

#: Tasks and frames keep what they are given, so it must last half an hour at least.
HAND_ON_BEFORE_MS = 30 * 60_000

#: Those held must last this long to be of any use when no new ones can be had.
USELESS_BEFORE_MS = 60_000

_PATH = "/api/2.1/unity-catalog/temporary-path-credentials"


@dataclass(frozen=True, slots=True, repr=False)
class Vended:
    """Credentials for a URL; never shown."""

    values: tuple[tuple[str, str], ...]
    expires_ms: int

    def lasts_ms(self) -> int:
        return self.expires_ms - time.time_ns() // 1_000_000

    def __repr__(self) -> str:
        return f"Vended(expires_ms={self.expires_ms})"


def vended(url: str, lasting_ms: int = RENEW_BEFORE_MS) -> Vended:
    """Credentials that open a URL for some more minutes; new ones if the last are running out.

    Args:
        lasting_ms: how long they should last at least.

    Raises:
        ColdTierError: the workspace gives none, and those held are running out.
        MissingExtraError: databricks-sdk is not installed.

    Runs on: driver|executor.
    """
    with _LOCK:
        held = _HELD.get(url)
        if held is None or held.lasts_ms() < lasting_ms:
            try:
                held = _HELD[url] = _ask(url)
            except (ColdTierError, MissingExtraError) as error:
                if held is None or held.lasts_ms() < USELESS_BEFORE_MS:
                    raise
                logger.warning(
                    "the credentials of %s could not be renewed, and end in %d s: %s",
                    url,
                    held.lasts_ms() // 1000,
                    error,
                )
        return held


def held_for(url: str) -> Vended | None:
    """The credentials that this process holds, to be handed on."""
    with _LOCK:
        return _HELD.get(url)


def hold(url: str, vended: Vended) -> None:
    """Keep credentials that were handed on, if they last longer than those held."""
    with _LOCK:
        mine = _HELD.get(url)
        if mine is None or mine.expires_ms < vended.expires_ms:
            _HELD[url] = vended


def _ask(url: str) -> Vended:
    try:
        from databricks.sdk import WorkspaceClient
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            "CREDENTIALS=unity-catalog needs databricks-sdk. Install it with: "
            "pip install 'lakelog[databricks]'"
        ) from missing
    try:
        # Not the SDK's own method for this: the SDK of older Databricks runtimes lacks it.
        answer = WorkspaceClient().api_client.do(
            "POST", _PATH, body={"url": url, "operation": "PATH_READ_WRITE"}
        )
        return _vended(answer)
    except Exception as error:  # the SDK's errors have no common base
        said = " ".join(str(error).split()) or type(error).__name__
        raise error_class(said)(
            f"Unity Catalog gives no credentials for {url}: {said}. Check that an external "
            "location covers it, that you have EXTERNAL USE LOCATION on it, and that this process "
            "is logged in to the workspace",
            path=url,
        ) from error


def _vended(answer: Mapping[str, Any]) -> Vended:
    expires_ms = int(answer["expiration_time"])
    if aws := answer.get("aws_temp_credentials"):
        values = {
            "AWS_ACCESS_KEY_ID": aws["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": aws["secret_access_key"],
            "AWS_SESSION_TOKEN": aws["session_token"],
        }
    elif azure := answer.get("azure_user_delegation_sas"):
        values = {"AZURE_STORAGE_SAS_TOKEN": azure["sas_token"]}
    else:
        kinds = ", ".join(sorted(answer.keys() - {"expiration_time", "url"})) or "nothing"
        raise ValueError(f"it answered with {kinds}, not with keys of S3 or a SAS of Azure")
    return Vended(tuple(values.items()), expires_ms)


_HELD: dict[str, Vended] = {}
_LOCK = threading.Lock()

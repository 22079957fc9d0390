"""What Redis refuses, or why it does not answer, as lakelog's errors."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from ..errors import (
    ForeignEntryError,
    HotTierAccessError,
    HotTierFullError,
    HotTierUnavailableError,
    LakelogError,
)
from .redis_url import CERTIFICATE_FILES

_STRIPPED = {
    MovedError: "MOVED",
    AskError: "ASK",
    TryAgainError: "TRYAGAIN",
    MasterDownError: "MASTERDOWN",
    ClusterDownError: "CLUSTERDOWN",
    BusyLoadingError: "LOADING",
    NoScriptError: "NOSCRIPT",
}
#: What XADD says where the stream has, or had, an entry above the one that is to be added.
_ABOVE_THE_END = (
    "equal or smaller than the target stream top item",
    "has exhausted the last possible ID",
)
#: UNBLOCKED: it waited for news while the server became a replica.
_NOT_NOW = {"BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED", *_STRIPPED.values()}


def moved(error: object) -> bool:
    """Whether a cluster node says that the key is elsewhere; nothing was executed."""
    return isinstance(error, Exception) and _code(error) in {"ASK", "MOVED"}


def translate(error: Exception, where: str, key: str | None = None) -> LakelogError:
    """An error reply of Redis as lakelog's error. After such a reply, nothing was written.

    Args:
        where: the server.
        key: the first key of the command, of a partition its stream.
    """
    code = _code(error)
    if isinstance(error, OutOfMemoryError):
        return HotTierFullError(
            f"Redis at {where} is full (maxmemory reached); nothing was written. Archive and trim "
            "(lakelog archive), shorten local.retention.ms, or raise maxmemory",
            where=where,
        )
    if isinstance(error, (AuthenticationError, NoPermissionError)) or _is_missing_right(error):
        return access_error(error, where)
    if isinstance(error, ReadOnlyError):
        return HotTierUnavailableError(
            f"Redis at {where} is a read-only replica ({reason(error)}); nothing was written. Try "
            "again: after a failover its name leads to the new primary. If it goes on, connect to "
            "the primary",
            sent=False,
            run_id=None,
        )
    if code == "NOSCRIPT":
        return HotTierUnavailableError(
            f"Redis at {where} has started, taken over or lost its scripts since somebody who may "
            "load lakelog's was connected, and this user may not (SCRIPT LOAD); nothing was "
            "written. It goes on once an archiver or admin of this version of lakelog connects "
            "(`lakelog help acl`)",
            sent=False,
            run_id=None,
        )
    if code in _NOT_NOW or "access a non local key" in str(error):  # it is gone from a moving slot
        return HotTierUnavailableError(
            f"Redis at {where} cannot take the command now ({reason(error)}); nothing was "
            "written. Try again, and check the server if it goes on",
            sent=False,
            run_id=None,
            moved=moved(error),
        )
    if code == "WRONGTYPE" or any(one in str(error) for one in _ABOVE_THE_END):
        return ForeignEntryError(
            f"{key or 'a key of lakelog'} at {where}, or a key beside it, was written by somebody "
            f"else ({reason(error)}); nothing was written. Find out who uses the keyspace, and "
            "give one of you another. `lakelog segments list TOPIC --verify` names an entry that "
            "stands in the way, `lakelog skip add` takes it out",
            key=key,
        )
    if "user_script" in str(error) or "not an integer" in str(error):
        # The scripts check their values before they write.
        return ForeignEntryError(
            f"{key or 'a key of lakelog'} at {where}, or a key beside it, holds what no lakelog "
            f"wrote ({reason(error)}). Find out who uses the keyspace, and give one of you "
            "another. `lakelog segments list TOPIC --verify` says what is damaged",
            key=key,
        )
    return LakelogError(f"Redis at {where} refused the command: {reason(error)}")


def access_error(error: Exception, where: str) -> HotTierAccessError:
    if isinstance(error, NoPermissionError) or _is_missing_right(error):
        advice = (
            "the user lacks a right. `lakelog acl ROLE --topic TOPIC` prints what a producer, "
            "consumer, reader, archiver or admin needs"
        )
    else:
        advice = "check user and password"
    return HotTierAccessError(
        f"Redis at {where} refuses the connection or command ({reason(error)}): {advice}",
        where=where,
    )


def _is_missing_right(error: Exception) -> bool:
    """Whether a script lacked a right: that has no code, only words (Redis's, Valkey's)."""
    text = str(error)
    return "The user executing the script can't" in text or "ACL failure in script" in text


def _code(error: Exception) -> str:
    """The error's code. redis-py strips the codes it has classes for; newer versions have more."""
    return _STRIPPED.get(type(error)) or str(error).partition(" ")[0]


def reason(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def was_closed(error: HotTierUnavailableError) -> bool:
    """Whether the connection ended before an answer came; not: none came in time."""
    return isinstance(error.__cause__, (redis.ConnectionError, ConnectionError, EOFError))


def says_demoted(error: ResponseError) -> bool:
    """Whether a server that refuses is a replica, perhaps since just now."""
    return isinstance(error, ReadOnlyError) or _code(error) == "UNBLOCKED"


_WITHOUT_HELLO = (
    "It does not take HELLO, by which the protocol is agreed on, as some proxies and any Redis "
    "before version 6 do not: add ?protocol=2 to the URL. A Redis must be of version 7 or newer"
)

SHOW_CERTIFICATE = (
    "where it lets in only those who show a certificate that it trusts, name yours with "
    "?ssl_certfile=/path/to/cert.pem&ssl_keyfile=/path/to/key.pem in the URL, files that are on "
    "every machine"
)


def why_unreachable(options: Mapping[str, Any], error: BaseException) -> str:
    """Why there is no connection, and what to do besides looking at the server."""
    for name in CERTIFICATE_FILES:
        file = options.get(name)
        if file and not Path(file).exists():
            return f"the file of {name}, {file}, is not on this machine. "
    said = f"{reason(error)}. "
    if "HELLO" in said or "NOPROTO" in said:
        said += f"{_WITHOUT_HELLO}. "
    elif "compiling script" in said or "unknown command" in said:
        said += "It is no Redis 7 or newer, or a proxy that takes fewer commands. "
    if may_want_certificate(options, error):
        said += f"{SHOW_CERTIFICATE[0].upper()}{SHOW_CERTIFICATE[1:]}. "
    return said


def may_want_certificate(options: Mapping[str, Any], error: BaseException | None) -> bool:
    """Whether a connection by TLS ended as it does where the client's certificate is not taken: by
    an alert, or by the server's closing it.
    """
    if not issubclass(options.get("connection_class", redis.Connection), redis.SSLConnection):
        return False
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return False  # it was the server's that was not taken
        if isinstance(error, (ssl.SSLError, ConnectionResetError, BrokenPipeError, EOFError)):
            return True
        if "closed by server" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False

"""What a store's refusal means: try again, full, refused for good; or a file gone, or damaged.

Arrow, delta-rs and Spark each put it in words of their own, mostly without a number. This is the
one place that reads those words; all code that opens storage translates its errors here.
"""

from __future__ import annotations

import errno
import re

import pyarrow as pa

from ..errors import (
    ColdTierAccessError,
    ColdTierError,
    ColdTierFullError,
    ColdTierRefusedError,
    ColdTierUnavailableError,
    CorruptRecordError,
    LakelogError,
    MissingFileError,
)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
#: What a file system answers that does not know what was asked of it.
_UNKNOWN = frozenset({errno.ENOSYS, errno.EOPNOTSUPP})

#: What delta-rs says where a file cannot be linked. Some file systems that know no links answer
#: EPERM to that, see link(2).
_NOT_LINKED = "Unable to rename file"

#: What to do about that, as a sentence without its full stop.
COMMITS_NEED = (
    "A commit needs a file system that can rename and link files, else two of one version could "
    "both go through, and a mounted object store often cannot: give another folder, or the store's "
    "own URL (s3://, abfss://, gs://)"
)

#: Errors of a network folder, or of a machine at its limits.
_AWAY = frozenset(
    {
        errno.EIO,
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.EPIPE,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.EHOSTDOWN,
        errno.ENOTCONN,
    }
)

# Texts, which `re` compiles when they are first looked for: most processes meet no such error, and
# compiling these takes as long as importing a dozen modules.

#: "AWS Error UNKNOWN (HTTP status 429)", "non-2xx status code: 503", "Status Code: 503" (Hadoop),
#: "Azure Error: [ServerBusy] 503"; "getTable call failed with: 503", "(HTTP 503)" (Unity Catalog).
_HTTP_STATUS = (
    r"(?:HTTP status|[Ss]tatus [Cc]ode|with status|StatusCode|Azure Error: \[\w+\]"
    r"|call failed with:|\(HTTP)\W*(\d{3})\b"
)
_OS_ERROR = r"(?:os error|[Ee]rrno) (\d+)\b"  # Rust's words, and Python's

_FULL_WORDS = r"No space left on device|Disk quota exceeded|File too large"
_AWAY_WORDS = (
    r"SLOW_DOWN|SlowDown|SERVICE_UNAVAILABLE|ServiceUnavailable|INTERNAL_FAILURE|InternalError"
    r"|THROTTL|Throttl|TooManyRequests|Too Many Requests|RequestLimitExceeded|ServerBusy"
    r"|REQUEST_TIME(?!_TOO_SKEWED)|RequestTimeout|OperationTimedOut|NETWORK_CONNECTION"
    r"|curlCode: \d+|[Tt]imed? ?out|timeout|[Cc]onnection (?:refused|reset|closed|aborted)"
    r"|error sending request|error decoding response body|connection error|dns error"
    r"|UnknownHostException|ConnectException|SocketException|NoHttpResponseException"
    r"|end of file before message length|Unexpected end of (?:stream|file) from server"
    r"|Premature end of (?:Content-Length|chunk)|SSLException"
    # As Java tells the numbers above, which it does not have:
    r"|Input/output error|Stale file handle|Too many open files|Cannot allocate memory"
    r"|Broken pipe|Network is unreachable|No route to host|Host is down|Transport endpoint is not"
    r"|Status\((?:UNAVAILABLE|RESOURCE_EXHAUSTED|DEADLINE_EXCEEDED|INTERNAL|ABORTED)\b"
)
_DENIED_WORDS = (
    r"ACCESS_DENIED|AccessDenied|Forbidden|Unauthorized|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId"
    r"|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|AuthenticationFailed|AuthorizationFailure"
    r"|INVALID_CLIENT_TOKEN_ID|UNRECOGNIZED_CLIENT|Permission denied|Read-only file system"
    r"|Status\((?:PERMISSION_DENIED|UNAUTHENTICATED)\b"
)

#: Arrow's errors on object stores have no number, whether the store failed or the file is damaged.
#: In doubt it was the store: nobody should be sent for a backup without need.
_STORE_SAYS = r"AWS Error|Azure Error|google::cloud::Status"
_PARQUET_SAYS = (
    r"Parquet |[Tt]hrift|[Pp]age|ZSTD|[Dd]ecompress|CRC|[Cc]orrupt|Unexpected end of stream"
)

#: Arrow's errors for bytes that it cannot read; OSErrors are looked at more closely.
DAMAGE = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowSerializationError,
    UnicodeDecodeError,
    OverflowError,
)

_OF_A_TABLE = r"(?P<topic>[^/]+)/[0-9a-f-]{36}/(?P<file>partition=(?P<number>\d+)/.+)$"


def error_class(error: object) -> type[ColdTierError]:
    """The class of lakelog's error for a library's error.

    `ColdTierRefusedError` where nothing can be told: only what may pass is worth a retry.

    Args:
        error: an exception, or its text on one line.
    """
    number, said = _number(error), str(error)
    if number in _FULL or re.search(_FULL_WORDS, said):
        return ColdTierFullError
    if number in _DENIED:
        return ColdTierAccessError
    # The last one counts: a library that retried names them all.
    statuses = [int(status) for status in re.findall(_HTTP_STATUS, said)]
    if statuses:
        if statuses[-1] in {408, 425, 429} or statuses[-1] >= 500:
            return ColdTierUnavailableError
        if statuses[-1] in {401, 403}:
            return ColdTierAccessError
    if re.search(_DENIED_WORDS, said):
        return ColdTierAccessError
    if number in _AWAY or re.search(_AWAY_WORDS, said):
        return ColdTierUnavailableError
    return ColdTierRefusedError


def cannot_commit(error: object) -> bool:
    """Whether a file system does not know what a commit asks of it; see `COMMITS_NEED`."""
    number = _number(error)
    return number in _UNKNOWN or (number == errno.EPERM and _NOT_LINKED in str(error))


def file_error(path: str, error: Exception, advice: str, *, is_local: bool) -> LakelogError:
    """The error that names the path, and says what to do; see `Storage.naming`.

    Args:
        error: an `OSError`, or one of `DAMAGE`.
        advice: if the store refuses, as a sentence without its full stop.
    """
    if isinstance(error, FileNotFoundError):
        return MissingFileError(
            f"{path} is missing: it was deleted behind the table's back. Put the file back "
            "(from a backup, or the bucket's older versions), or give up the records up to the "
            "end of the range in its name with `lakelog delete-records` (where "
            f"cleanup.policy=compact, set compact,delete for that){_or_skip_it(path)}",
            path=path,
        )
    if not isinstance(error, OSError):
        return _corrupt(path, error)
    said = one_line(error)
    refused = error_class(error)
    damaged = re.search(_PARQUET_SAYS, said) and not re.search(_STORE_SAYS, said)
    unknown = refused is ColdTierRefusedError and error.errno is None
    if unknown and (is_local or damaged):
        return _corrupt(path, error)
    if refused is ColdTierUnavailableError:
        advice = "The store is busy or away; try again"
    elif is_local and cannot_commit(error):
        advice = COMMITS_NEED
    return refused(f"{path} cannot be used: {said}. {advice}", path=path)


def _number(error: object) -> int | None:
    number: int | None = getattr(error, "errno", None)
    if number is None and (found := re.search(_OS_ERROR, str(error))):
        return int(found[1])
    return number


def one_line(error: object) -> str:
    """A library's text as part of a sentence."""
    return " ".join(_plain(error).split()).rstrip(".")


def first_sentence(error: object) -> str:
    """The first line of a library's text, as part of a sentence."""
    return _plain(error).strip().partition("\n")[0].rstrip(" ;.")


def _plain(error: object) -> str:
    """A library's text without delta-rs's colours, and without stacks, whose names mislead."""
    text = re.sub(_COLOURS, "", str(error)).partition("JVM stacktrace")[0]
    return re.sub(_STACKS, "", text)


_COLOURS = r"\x1b\[[0-9;]*m"
#: Py4J's first words, Java's stack, and that of a server that answers in JSON.
_STACKS = (
    r"\AAn error occurred while calling \S+\s*:?|\n\s+at [^\n]*|\n\s+\.\.\. \d+ more"
    r'|"stack(?:_trace)?":(?:"(?:[^"\\]|\\.)*"|\[(?:"(?:[^"\\]|\\.)*",?)*\]),?'
)


def _corrupt(path: str, error: Exception) -> CorruptRecordError:
    return CorruptRecordError(
        f"{path} is not the Parquet file that was written: {one_line(error)}. Put it back from a "
        f"backup{_or_skip_it(path)}",
        path=path,
    )


def _or_skip_it(path: str) -> str:
    """How to go on without a file of a topic's table, as the end of a sentence."""
    found = re.search(_OF_A_TABLE, path)
    if found is None:
        return ""
    command = f"lakelog skip add {found['topic']} -p {found['number']} --file {found['file']}"
    return f", or move it aside, so that all others go on: `{command}`"

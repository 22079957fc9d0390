"""Folders, files and stores as people name them: the one place that refuses what is mistyped."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from urllib.parse import unquote

from ..errors import InvalidArgumentError

OBJECT_STORES = frozenset({"s3", "abfss", "gs"})

#: How other tools call the same stores.
OTHER_NAMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}

_AZURE = "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
_FOLDER = "a folder, s3://, abfss:// or gs://"

#: What begins like this is meant for a URL, though its colon or a slash of it may be missing.
_URL = re.compile(
    r"""(?P<scheme> [a-z][a-z0-9+.-]* (?=:/)
      | (?: s3[an]? | gc?s | abfss? | wasbs? | az | azure | adl | dbfs | hdfs | file | https? | arn
          | rediss? | unix ) (?=: | ;?//) )
    [:;]? (?P<slashes>/*) (?P<rest>.*)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

#: Signs that files, forms and settings leave at the ends of a text, where nobody sees them.
_UNSEEN = " \t\r\n\f\v\xa0\u200b\ufeff"


def path_or_url(given: str | PathLike[str], what: str) -> str:
    """The absolute path of a folder or file of this machine, or an object store's URL.

    Args:
        given: a path, in which ``~`` is the user's home, a ``file:///`` URL, or a store's.
        what: is looked for there, for the message: "cold root".

    Raises:
        InvalidArgumentError: it is mistyped, or names another kind of place.
    """
    text = _typed(given, what)
    url = _URL.match(text)
    if url is None:
        return str(_absolute(text, given, what))
    scheme, rest = url["scheme"], url["rest"]
    if scheme in OBJECT_STORES:
        parts = rest.rstrip("/").split("/")
        if text.startswith(f"{scheme}://{parts[0]}") and not {"", ".", ".."} & {*parts}:
            return text.rstrip("/")
    elif scheme.lower() == "file" and text[len(scheme)] == ":":
        host, slash, path = rest.partition("/") if url["slashes"] == "//" else ("", "/", rest)
        if url["slashes"] and slash and host in ("", "localhost") and not {"?", "#"} & {*path}:
            return str(_absolute(f"/{unquote(path)}", given, what))
    raise _refused(text, what, _meant(url))


def local_path(given: str | PathLike[str], what: str) -> Path:
    """The absolute path that is meant; ``~`` is the user's home.

    Args:
        what: is looked for there, for the message: "log's directory".

    Raises:
        InvalidArgumentError: there can be no such path (no text, nobody's home, the working
            directory is gone), or it is mistyped, or a URL.
    """
    text = _typed(given, what)
    if _URL.match(text) is not None:
        raise _refused(text, what, "the path of one on this machine, which begins with '/'")
    return _absolute(text, given, what)


def _typed(given: str | PathLike[str], what: str) -> str:
    """The text, without the mistakes that every kind of place shares."""
    if not isinstance(given, (str, PathLike)) or not str(given).strip(_UNSEEN):
        raise InvalidArgumentError(f"{given!r} is not a {what}: give {_FOLDER}", value=given)
    text = str(given)
    bare = text.strip(_UNSEEN)
    if bare[0] == bare[-1] and bare[0] in "\"'`" and len(bare) > 2:
        bare = bare[1:-1]
    if bare != text:
        raise _refused(text, what, f"it without the blanks or quotes at its ends: {bare!r}")
    if re.match(r"\$\{?\w", text):
        raise _refused(text, what, "it with the variable's value: nothing here looks it up")
    if re.match(r"[a-zA-Z]:[\\/]", text):
        raise _refused(text, what, "it as Linux does (in WSL, C:\\logs is /mnt/c/logs)")
    return text


def _absolute(text: str, given: object, what: str) -> Path:
    try:
        path = Path(text).expanduser().absolute()
        if "\0" in str(path):
            raise ValueError("a path has no NUL in it")
        str(path).encode()  # what Delta and Arrow are told paths in
    except (ValueError, RuntimeError, OSError) as error:
        raise InvalidArgumentError(
            f"{given!r} cannot be the path of a {what}: {error}. Give another, absolute one",
            value=given,
        ) from error
    return path


def _meant(url: re.Match[str]) -> str:
    """What is to be written instead of a URL that is none."""
    scheme = url["scheme"].lower()
    scheme = OTHER_NAMES.get(scheme, scheme)
    parts = [part for part in url["rest"].split("/") if part not in ("", ".", "..")]
    if scheme in OBJECT_STORES:
        if not parts or (scheme == "abfss" and "@" not in parts[0]):
            return _AZURE if scheme == "abfss" else f"{scheme}://BUCKET/FOLDER"
        written = f"{scheme}://{'/'.join(parts)}"
        one_slash = url["slashes"] == "/"
        return written + (" as text, since a pathlib.Path drops a slash" if one_slash else "")
    if scheme == "file":
        return "file:///FOLDER with its whole path, '?' and '#' as %3F and %23, or the path alone"
    if scheme in ("az", "azure", "adl", "wasb", "wasbs"):
        return _AZURE
    if scheme == "dbfs":
        return "the URL of an external location (s3://, abfss://, gs://)"
    if scheme in ("redis", "rediss", "unix"):
        return f"{_FOLDER}; the URL of a Redis goes to redis_url, --redis"
    if scheme == "arn":
        return "s3://BUCKET/FOLDER"
    return f"{_FOLDER}; {scheme}:// is not one of file, {', '.join(sorted(OBJECT_STORES))}"


def _refused(text: str, what: str, write: str) -> InvalidArgumentError:
    if re.match(
        r"(?!file)[^:]*:(/*[^:]*:.*@|.*\?)", text, re.IGNORECASE
    ):  # there may be keys in it
        return InvalidArgumentError(
            f"a {what} is written without credentials in it, and as a folder, s3://BUCKET/FOLDER, "
            f"gs://BUCKET/FOLDER or {_AZURE}"
        )
    return InvalidArgumentError(f"{text!r} is not a {what}: write {write}", value=text)

"""Where a secret is, in a form that everybody may read.

| reference                | the secret is                    | can be resolved by               |
|--------------------------|----------------------------------|----------------------------------|
| ``env:NAME``             | in the process's environment     | any process, Spark executors too |
| ``file:/PATH``           | in a file, as its text           | any process on a machine that    |
|                          |                                  | has the file and may read it     |
| ``databricks:SCOPE/KEY`` | in a Databricks secret scope     | the driver on Databricks, and    |
|                          |                                  | who is logged in to a workspace  |

A file is what orchestrators mount (Kubernetes, Docker, systemd); line ends at its end do not count.

References travel (in plans, job parameters, pickles, event logs); secrets do not. Each process
resolves what it needs.
"""

from __future__ import annotations

import base64
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from ..errors import InvalidArgumentError, MissingExtraError

_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_FILE = re.compile(r"file:(/[^\x00-\x1f\x7f]{1,1024})")
_DATABRICKS = re.compile(r"databricks:([\w.@-]{1,128})/([\w.-]{1,128})")

#: The most that a file of a secret holds; more is some other file.
_MAX_FILE_BYTES = 64 * 1024


def resolve_secret(reference: str, what: str) -> str:
    """The secret that a reference names, as this process sees it.

    Args:
        reference: ``env:NAME``, ``file:/PATH`` or ``databricks:SCOPE/KEY``.
        what: the argument or option that has the reference, for errors.

    Raises:
        InvalidArgumentError: no such reference, or it names nothing that can be read here.
        MissingExtraError: reading it needs databricks-sdk.

    Runs on: driver|executor.
    """
    check_secret_reference(reference, what)
    if found := _ENV.fullmatch(reference):
        return _from_environment(reference, found[1], what)
    if found := _FILE.fullmatch(reference):
        return _from_file(reference, Path(found[1]), what)
    found = _DATABRICKS.fullmatch(reference)
    assert found is not None  # checked above
    return _from_databricks(reference, found[1], found[2], what)


def is_secret_reference(text: object) -> bool:
    """Whether it has the form of a reference; nothing is looked up."""
    return isinstance(text, str) and any(
        form.fullmatch(text) for form in (_ENV, _FILE, _DATABRICKS)
    )


def check_secret_reference(reference: str, what: str) -> None:
    """Refuse what is no reference; nothing is looked up.

    Raises:
        InvalidArgumentError: it has none of these forms. The message does not repeat it: it may be
            the secret itself.
    """
    if not is_secret_reference(reference):
        raise InvalidArgumentError(
            f"{what} does not say where the secret is; write env:NAME for an environment variable, "
            "file:/PATH for a file, or databricks:SCOPE/KEY for a Databricks secret, and never the "
            "secret itself"
        )


def check_executors_can_resolve(reference: str, what: str) -> None:
    """Refuse a reference that only the driver can resolve, before a task fails at it.

    Raises:
        InvalidArgumentError: it names a Databricks secret.
    """
    if _DATABRICKS.fullmatch(reference):
        raise InvalidArgumentError(
            f"{what}={reference!r} would be resolved by Spark's tasks too. {_ON_EXECUTORS}",
            name=what,
            value=reference,
        )


def _from_environment(reference: str, name: str, what: str) -> str:
    secret = os.environ.get(name, "")
    if not secret:
        state = "empty" if name in os.environ else "not set"
        raise InvalidArgumentError(
            f"{what}={reference!r}: the environment variable {name} is {state} in this process. "
            "It must be set wherever the reference is resolved, on Spark's executors too: on "
            f"Databricks as the cluster's environment variable {name}={{{{secrets/SCOPE/KEY}}}}, "
            f"elsewhere with spark.executorEnv.{name} or in the executors' own environment "
            "(env:NAME). Spark writes its settings into event logs and blackens only those with "
            "PASSWORD or SECRET in the name, so a variable set with spark.executorEnv should have "
            "one of them in its name",
            name=what,
            value=reference,
        )
    return secret


def _from_file(reference: str, path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            found = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InvalidArgumentError(
            f"{what}={reference!r} could not be read: {said}. The file must be readable wherever "
            "the reference is resolved, on the machines of Spark's executors too",
            name=what,
            value=reference,
        ) from error
    try:
        secret = found.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        secret = ""
    if not secret or len(found) > _MAX_FILE_BYTES:
        raise InvalidArgumentError(
            f"{what}={reference!r} is no file of a secret: it is empty, no text, or larger than "
            f"{_MAX_FILE_BYTES} bytes. Write the secret into it, as text and nothing else",
            name=what,
            value=reference,
        ) from None
    return secret


# -- Databricks ----------------------------------------------------------------------------------


def _from_databricks(reference: str, scope: str, key: str, what: str) -> str:
    try:
        dbutils = _dbutils()
        if dbutils is not None:
            return str(dbutils.secrets.get(scope=scope, key=key))
        return _by_rest(scope, key)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            f"{what}={reference!r}: outside Databricks a secret is read with databricks-sdk, which "
            f"is not installed. Install it with: pip install 'lakelog[databricks]'. {_ON_EXECUTORS}"
        ) from missing
    except Exception as error:  # theirs have no common base
        _refuse_unreadable(reference, what, error)


def _dbutils() -> Any | None:
    """The notebook's or job's dbutils, on the driver of a Databricks cluster or on serverless."""
    if find_spec("pyspark") is None or find_spec("pyspark.dbutils") is None:
        return None  # only Databricks' own pyspark has it
    from pyspark.dbutils import DBUtils
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return None if session is None else DBUtils(session)  # executors have no session


def _by_rest(scope: str, key: str) -> str:
    from databricks.sdk import WorkspaceClient

    encoded = WorkspaceClient().secrets.get_secret(scope, key).value
    return base64.b64decode(encoded or "").decode("utf-8")


_ON_EXECUTORS = (
    "Executors have neither dbutils nor a login: give the cluster an environment variable "
    "NAME={{secrets/SCOPE/KEY}} and refer to it as env:NAME"
)


def _refuse_unreadable(reference: str, what: str, error: Exception) -> NoReturn:
    said = " ".join(str(error).split()) or type(error).__name__
    raise InvalidArgumentError(
        f"{what}={reference!r} could not be read from Databricks: {said}. Check that the scope and "
        "the key exist and that you may READ the scope (databricks secrets list-acls), and that "
        f"this process is logged in to the workspace. {_ON_EXECUTORS}",
        name=what,
        value=reference,
    ) from error

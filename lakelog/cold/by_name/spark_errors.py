"""Turns Spark's errors into lakelog's: of queries, and of tasks, which a driver sees as text alone.

Runs on: driver; `TaskErrors.carried` on executors.
"""

from __future__ import annotations

import base64
import contextlib
import pickle
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...errors import ColdTierRefusedError, CorruptRecordError, LakelogError, MissingFileError
from ..store_errors import error_class, one_line

#: How Spark speaks of a damaged file, and of a missing one.
_DAMAGED = re.compile(r"FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|is not a Parquet file")
_MISSING = re.compile(r"FILE_NOT_EXIST|FileNotFound|VERSION_NOT_FOUND|TIME_TRAVEL")


def is_unreadable(error: Exception) -> bool:
    """Whether a query failed because of a file of the table: asking again does not help."""
    if isinstance(error, CorruptRecordError | MissingFileError):
        return True
    text = one_line(error)
    if _MISSING.search(text):
        return re.search("VERSION_NOT_FOUND|TIME_TRAVEL", text) is None
    return _DAMAGED.search(text) is not None and error_class(text) is ColdTierRefusedError


def is_left_to_catalog(error: Exception) -> bool:
    """Whether a catalog keeps OPTIMIZE or VACUUM of its own tables to itself."""
    return "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION" in str(error)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say what a failed query was about."""
    try:
        yield
    except LakelogError:
        raise
    except Exception as error:  # Spark's, Py4J's and Connect's errors have no common base
        text = one_line(error)
        if _MISSING.search(text):
            raise MissingFileError(
                f"the rows of {path} can no longer be read: what a commit removed was vacuumed, or "
                f"somebody deleted files behind the table's back ({text[:700]}). Look again; if "
                "that does not help, RESTORE the table",
                path=path,
            ) from error
        if is_unreadable(error):
            raise CorruptRecordError(
                f"rows from {path} on cannot be read: a file is damaged, Spark says {text[:700]}. "
                "What lies in other files is read and archived as before. Put a sound copy in its "
                "place; or give up all records of the partition up to its last one with `lakelog "
                "delete-records`, after which retention takes it out",
                path=path,
            ) from error
        raise error_class(text)(
            f"{path} cannot be used: Spark says {text[:1000]}. Check that the table may be read "
            "and written by this user",
            path=path,
        ) from error


class CarriedError(Exception):
    """Holds an error's text, and the error itself."""


@dataclass(frozen=True, slots=True)
class TaskErrors:
    """Carries the errors of one job in the text of the exception that Spark makes of them.

    Such a text may quote records, so only what stands beside the job's own token is unpickled. The
    token is random, made on the driver and sent with the function, so no record can hold it.

    | token | ``<`` what the error says | token | ``=`` the error, base64 | token | ``>`` |
    """

    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def carried(self, error: Exception) -> CarriedError:
        """What a task raises instead of an error."""
        from pyspark import cloudpickle

        try:
            content = cloudpickle.dumps(error)
            pickle.loads(content)
        except Exception:  # the error cannot be pickled, but its text can
            content = pickle.dumps(_plain(f"{type(error).__name__}: {error}"))
        encoded = base64.b64encode(content).decode()
        token = self.token
        return CarriedError(f"{token}< {error} {token}={encoded}{token}>")

    def found_in(self, text: str) -> Exception | None:
        """The error that a failed job's text carries; None if it carries none.

        Spark Connect cuts long texts. Of a text that was cut, this is a plain error that says what
        is left of it.
        """
        token = re.escape(self.token)
        whole = re.search(f"{token}=([A-Za-z0-9+/=]+){token}>", text)
        if whole is not None:
            # An error of other versions on the executors may not load here; then its text must do.
            with contextlib.suppress(Exception):
                error: Exception = pickle.loads(base64.b64decode(whole[1]))
                return error
        said = re.search(f"{token}<(.*?)(?:{token}|$)", text, re.DOTALL)
        return None if said is None else _plain(said[1].strip())


def _plain(what: str) -> LakelogError:
    return LakelogError(f"a task failed: {what}")

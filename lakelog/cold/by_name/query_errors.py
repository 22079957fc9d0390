"""Turns Spark's errors for failed queries into lakelog's.

Runs on: driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

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

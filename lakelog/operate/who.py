"""Who runs this process, for what is written down of what was done."""

from __future__ import annotations

import getpass
import os
import socket

from ..spark.open_session import session_there

#: Where it is set, this process runs in Databricks, where all processes have one user.
_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


def who() -> str:
    """``user@host``; on Databricks the workspace's user, if Spark tells.

    A question mark stands for a user without a name, as in some containers.
    """
    if _DATABRICKS in os.environ and (user := _user_of_spark()):
        return user
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = "?"
    return f"{user}@{socket.gethostname()}"


def _user_of_spark() -> str | None:
    try:
        spark = session_there()
        row = None if spark is None else spark.sql("SELECT current_user()").first()
    except Exception:  # whatever Spark fails with, what is done matters more than its name
        return None
    return None if row is None else str(row[0])

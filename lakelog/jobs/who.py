"""Who runs something, for the list of runs."""

from __future__ import annotations

import getpass
import os
import platform
import sys
from typing import Any

#: Where it is set, this process runs in Databricks, where all processes have one user.
_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


def who() -> str:
    """``user@host``; on Databricks the workspace's user, if Spark tells."""
    if _DATABRICKS in os.environ and (user := _user_of_spark()):
        return user
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container whose user has no name
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"
    return f"{user}@{platform.node() or 'localhost'}"


def _user_of_spark() -> str | None:
    sessions: Any = sys.modules.get("pyspark.sql")
    if sessions is None:
        return None
    try:
        spark = sessions.SparkSession.getActiveSession()
        return None if spark is None else str(spark.sql("SELECT current_user()").first()[0])
    except Exception:  # whatever Spark fails with, the run matters more than its name
        return None

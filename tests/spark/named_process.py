"""Archives a topic by name in a process of its own, with a Spark of its own, until it is killed.

``named_process.py JSON``, with these members: ``url`` of Redis; ``schema``, and ``folder``, where
its tables lie in Spark's own catalog; ``topic``; ``conf`` of the session.

Spark's own catalog lives in the memory of its process, so what lies in the folder is registered
again at the start. A catalog that outlives its clients would have done no more: where a table lies.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lakelog import Lakelog
from lakelog.spark import session
from tests.support.unity_catalog import SPARKS_OWN


def register(spark: Any, schema: str, folder: Path) -> None:
    """Have a session's own catalog know a schema, and the tables that lie in its folder."""
    if not schema.startswith(f"{SPARKS_OWN}."):
        return  # a server knows them
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema} LOCATION '{folder}'")
    for log in folder.glob("*/_delta_log"):
        if any(log.glob("*.json")):  # else a killed CREATE TABLE made the folder and no more
            table = f"{schema}.{log.parent.name}"
            spark.sql(f"CREATE TABLE IF NOT EXISTS {table} USING delta LOCATION '{log.parent}'")


def main(text: str) -> None:
    wanted = json.loads(text)
    spark = session("lakelog-named", cores=2, object_stores=["s3"], conf=wanted["conf"])
    register(spark, wanted["schema"], Path(wanted["folder"]))
    with Lakelog.connect(wanted["url"], wanted["schema"], engine="spark") as log:
        for report in log.archive_continuously(wanted["topic"]):
            print(report, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

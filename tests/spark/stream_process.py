"""A streaming query or a batch in a process of its own, with a Spark of its own.

``stream_process.py JSON``, with these members: ``options`` of the data source, ``sink`` and
``checkpoint``, ``conf`` and ``object_stores`` of the session, and ``mode``: ``follow`` (until
killed), ``drain`` (what is there now) or ``frame`` (`lakelog.spark.read`, what it explains is
printed); several one after the other.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from lakelog.spark import read, session
from lakelog.spark.datasource import HAS_READ_LIMITS

#: Spark 4.0 and 4.1 finish a micro-batch that was left unfinished, and then stop.
RUNS = 1 if HAS_READ_LIMITS else 2


def stream(spark: Any, wanted: dict[str, Any], mode: str) -> None:
    frame = spark.readStream.format("lakelog").options(**wanted["options"]).load()
    writer = frame.writeStream.format("delta").option("checkpointLocation", wanted["checkpoint"])
    follow = {"processingTime": "0 seconds"}
    trigger = follow if mode == "follow" else {"availableNow": True}
    for _ in range(RUNS):
        query = writer.trigger(**trigger).start(wanted["sink"])
        print("started", flush=True)
        query.awaitTermination()
        query.explain(True)
    print("progress", json.dumps(query.lastProgress.json if query.lastProgress else None))


def frame(spark: Any, wanted: dict[str, Any]) -> None:
    options = wanted["options"]
    found = read(
        spark,
        options["redis"],
        options["cold"],
        options["subscribe"],
        password_ref=options.get("passwordRef"),
        storage_options=json.loads(options.get("storageOptions", "{}")),
    )
    found.explain("extended")
    found.explain("formatted")
    print("rows", found.count(), flush=True)


def main(text: str) -> None:
    wanted = json.loads(text)
    spark = session(
        "lakelog-stream",
        cores=2,
        conf=wanted.get("conf"),
        object_stores=wanted.get("object_stores", ()),
    )
    for mode in wanted["mode"].split():
        if mode == "frame":
            frame(spark, wanted)
        else:
            stream(spark, wanted, mode)
    spark.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""A Spark Connect server in a process of its own: ``connect_server.py PORT CONF``, until stdin
closes. CONF is JSON.

Its Spark is lakelog's local one, so the Delta jars and a small machine's settings are as elsewhere.
"""

from __future__ import annotations

import json
import sys

from lakelog.spark import session


def main(port: str, conf: str) -> None:
    more = json.loads(conf)
    spark = session(
        "lakelog-connect",
        cores=2,
        object_stores=["s3"] if any(".s3a." in name for name in more) else [],
        conf={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
            **more,
        },
    )
    print("ready", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

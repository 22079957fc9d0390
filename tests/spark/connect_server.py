"""A Spark Connect server in a process of its own: ``connect_server.py PORT``, until stdin closes.

Its Spark is lakelog's local one, so the Delta jars and a small machine's settings are as elsewhere.
"""

from __future__ import annotations

import sys

from lakelog.spark import session


def main(port: str) -> None:
    spark = session(
        "lakelog-connect",
        cores=2,
        conf={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
        },
    )
    print("ready", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

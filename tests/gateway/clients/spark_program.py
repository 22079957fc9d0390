"""What Spark's own source and sink for Kafka do, as JSON.

``spark_program.py SERVERS TOPIC JARS FOLDER``: the topic has two partitions; FOLDER is for
checkpoints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

COUNT = 1_000


def main() -> None:
    servers, topic, jars, folder = sys.argv[1:]
    builder = SparkSession.Builder().master("local[2]").config("spark.jars", jars)
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    options = {"kafka.bootstrap.servers": servers}
    reader = {**options, "subscribe": topic, "includeHeaders": "true"}

    def sent(start: int, **more: str) -> None:
        frame = spark.range(start, start + COUNT).selectExpr(
            "CAST(id AS STRING) AS key",
            "CAST(id AS STRING) AS value",
            "CAST(id % 2 AS INT) AS partition",
            f"'{topic}' AS topic",
            "array(named_struct('key', 'from', 'value', CAST('spark' AS BINARY))) AS headers",
        )
        frame.write.format("kafka").options(**options, includeHeaders="true", **more).save()

    def read(**more: str) -> DataFrame:
        return spark.read.format("kafka").options(**{**reader, **more}).load()

    def counts(frame: DataFrame) -> list[Any]:
        numbers = frame.selectExpr("CAST(CAST(value AS STRING) AS INT) AS n", "offset", "headers")
        told = numbers.selectExpr(
            "count(*)",
            "count(DISTINCT n)",
            "min(offset)",
            "max(offset)",
            "max(size(headers))",
        )
        return list(told.collect()[0])

    def streamed() -> list[int]:
        """Follows the topic to its end; how many rows of each batch were new."""
        query = (
            spark.readStream.format("kafka")
            .options(**reader, startingOffsets="earliest", maxOffsetsPerTrigger=str(COUNT // 2))
            .load()
            .selectExpr("key", "value", "headers", f"'{topic}-copy' AS topic")
            .writeStream.format("kafka")
            .options(**options, includeHeaders="true", checkpointLocation=f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]

    seen: dict[str, Any] = {}
    sent(0, **{"kafka.compression.type": "zstd"})
    seen["all"] = counts(read())
    middle = {topic: {"0": 100, "1": 200}}
    ends = {topic: {"0": 400, "1": -1}}
    bounded = read(startingOffsets=json.dumps(middle), endingOffsets=json.dumps(ends))
    seen["between offsets"] = counts(bounded)
    seen["since 1970"] = counts(read(startingTimestamp="1"))
    seen["in splits"] = read(minPartitions="8").rdd.getNumPartitions()
    seen["streamed"] = streamed()
    sent(COUNT, **{"kafka.acks": "1", "kafka.enable.idempotence": "false"})
    seen["streamed on"] = streamed()
    seen["copied"] = counts(read(subscribe=f"{topic}-copy"))
    print(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    Path(sys.argv[4]).mkdir(exist_ok=True)
    main()

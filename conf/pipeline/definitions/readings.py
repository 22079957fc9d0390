"""A declarative pipeline over a topic: its records as they come, and what follows from them.

Runs as a Lakeflow pipeline on Databricks, and with ``spark-pipelines`` elsewhere (Spark 4.1 or
newer). Where the log is comes from the pipeline's configuration; see pipeline.yml. Its tables lie
beside the topics' own, and so have other names.
"""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.getActiveSession()

READING = "n BIGINT, celsius DOUBLE"


def setting(name: str) -> str:
    return spark.conf.get(f"lakelog.{name}", "")


@dp.table(
    comment="Readings as sensors sent them, one row a record",
    schema="""
        partition INT COMMENT 'of the topic',
        offset BIGINT COMMENT 'in the partition; with it the name of a record for ever',
        taken_at TIMESTAMP COMMENT 'when the sensor says',
        sensor STRING COMMENT 'the key of the record',
        n BIGINT COMMENT 'number of the reading',
        celsius DOUBLE COMMENT 'degrees'
    """,
)
def sensor_readings() -> DataFrame:
    options = {
        "redis": setting("redis_url"),
        "passwordRef": setting("redis_password_ref"),
        "cold": setting("location") or setting("cold"),
        "keyspace": setting("keyspace"),
        "subscribe": setting("topic"),
        "startingOffsets": setting("starting_offsets") or "earliest",
    }
    records = (
        spark.readStream.format("lakelog")
        .options(**{name: value for name, value in options.items() if value})
        .load()
    )
    return records.select(
        "partition",
        "offset",
        f.col("timestamp").alias("taken_at"),
        f.col("key").cast("string").alias("sensor"),
        f.from_json(f.col("value").cast("string"), READING).alias("reading"),
    ).select("partition", "offset", "taken_at", "sensor", "reading.*")


@dp.materialized_view(comment="Each sensor's readings an hour")
def sensor_hours() -> DataFrame:
    by = [f.col("sensor"), f.date_trunc("hour", "taken_at").alias("hour")]
    return (
        spark.read.table("sensor_readings")
        .groupBy(*by)
        .agg(f.count("*").alias("readings"), f.round(f.avg("celsius"), 2).alias("celsius"))
    )

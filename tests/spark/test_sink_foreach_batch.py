"""What `foreachBatch` writes in update mode is appended once where the micro-batch is named."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from lakelog.errors import InvalidArgumentError
from lakelog.spark import register
from lakelog.spark.options import parse_write


class Away(Exception):
    """Whoever writes a micro-batch fails behind the write."""


def run(spark: Any, log: Any, checkpoint: str, *, fails: bool, named: bool = True) -> None:
    def write(batch: Any, number: int) -> None:
        rows = batch.selectExpr("key", "to_json(struct(count)) value").sortWithinPartitions("key")
        options = {"redis": log.url, "topic": "counts"}
        if named:
            options |= {"txnAppId": "counts", "txnVersion": str(number)}
        rows.write.format("lakelog").options(**options).mode("append").save()
        if fails:
            raise Away

    stream = spark.readStream.format("lakelog").options(**log.options(startingOffsets="earliest"))
    counts = stream.load().groupBy("key").count()
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@pytest.mark.parametrize("named", [True, False])
def test_a_micro_batch_that_is_repeated_is_appended_once_where_it_is_named(
    spark: Any, make_log: Any, tmp_path: Any, named: bool
) -> None:
    register(spark)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    log = make_log(2)
    log.lakelog.topics.create("counts", 2)
    log.append(60)
    keys = Counter(row[2] for row in log.rows)
    checkpoint = str(tmp_path / "checkpoint")
    for fails in (True, True, False):
        if fails:
            with pytest.raises(StreamingQueryException):
                run(spark, log, checkpoint, fails=True, named=named)
        else:
            run(spark, log, checkpoint, fails=False, named=named)
    found = list(log.lakelog.log("counts").search().records())
    assert len(found) == len(keys) * (1 if named else 3)
    assert {one.key: json.loads(one.value)["count"] for one in found} == keys
    log.append(10)
    run(spark, log, checkpoint, fails=False, named=named)
    found = list(log.lakelog.log("counts").search().records())
    now = {one.key: json.loads(one.value)["count"] for one in found}
    assert now == Counter(row[2] for row in log.rows)


def test_a_batch_has_both_a_name_and_a_number_and_a_stream_neither(
    spark: Any, make_log: Any, tmp_path: Any
) -> None:
    for some in ({"txnAppId": "x"}, {"txnVersion": "1"}):
        with pytest.raises(InvalidArgumentError, match="give both, or none"):
            parse_write({"redis": "redis://h", **some})
    with pytest.raises(InvalidArgumentError, match="txnVersion='-1' is not a whole number from 0"):
        parse_write({"redis": "redis://h", "txnAppId": "x", "txnVersion": "-1"})
    register(spark)
    log = make_log(1)
    log.lakelog.topics.create("counts", 1)
    log.append(1)
    stream = spark.readStream.format("lakelog").options(**log.options(startingOffsets="earliest"))
    options = {"redis": log.url, "topic": "counts", "txnAppId": "x", "txnVersion": "1"}
    with pytest.raises(Exception, match="told apart by their query and number"):
        stream.load().writeStream.format("lakelog").options(**options).option(
            "checkpointLocation", str(tmp_path)
        ).trigger(availableNow=True).start().awaitTermination()

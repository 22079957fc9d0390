"""The same cleaning with the reading and writing done by Spark's workers."""

from __future__ import annotations

from lakelog.cleanup.cleanup import Cleanup
from lakelog.engines.spark import SparkEngine

COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


def test_spark_workers_clean_as_the_same_process_does(cold_log, spark):
    logs = [
        cold_log(partitions=3, engine=engine, **COMPACT) for engine in (None, SparkEngine(spark))
    ]
    for log in logs:
        for partition in range(3):
            for segment in range(4):
                start = 50 * segment
                pairs = [
                    (b"k%d" % (at * 31 % (20 + partition)), None if at % 11 == 0 else b"%d" % at)
                    for at in range(start, start + 50)
                ]
                log.segment(pairs[:20], pairs[20:], partition=partition)
        report = Cleanup(log.topic, log.table, log.clock).run()
        assert not report.failures
        assert [one.topic_partition.partition for one in report.compacted] == [0, 1, 2]
        assert [one.topic_partition.partition for one in report.optimized] == [0, 1, 2]
    for partition in range(3):
        assert logs[0].left(partition) == logs[1].left(partition)
        assert len(logs[0].left(partition)) == 50 + 20 + partition


def test_a_bad_file_is_told_from_the_worker_and_the_rest_goes_on(cold_log, spark):
    log = cold_log(partitions=2, engine=SparkEngine(spark), **COMPACT)
    for partition in (0, 1):
        log.segment([(b"a", b"1"), (b"a", b"2")], partition=partition)
        log.segment([(b"b", b"1")], partition=partition)
    bad = log.table.snapshot().files.of_partition(0)[0].path
    log.storage.delete_file(f"{log.table.path}/{bad}")

    report = Cleanup(log.topic, log.table, log.clock).run(("compact",))

    (failure,) = report.failures
    assert failure.topic_partition == log.topic.partition(0)
    assert bad in str(failure)
    assert [offset for offset, _, _ in log.left(1)] == [1, 2]

from __future__ import annotations

from lakelog.archive.report import ArchiveReport, PartitionArchived
from lakelog.values.topic_partition import OffsetRange, TopicPartition


def test_a_run_without_an_effect_says_so():
    report = ArchiveReport("orders")
    assert not report
    assert str(report) == "orders: nothing to archive"


def test_a_report_adds_up_its_partitions():
    report = ArchiveReport(
        "orders",
        (
            PartitionArchived(TopicPartition("orders", 0), 5, 1505, 1500, 20_000, 1, 0.25),
            PartitionArchived(TopicPartition("orders", 1), 0, 10, 4, 300, 2, 0.25),
        ),
        {0: OffsetRange(5, 1505)},
        orphans_removed=1,
        seconds=0.5,
    )
    assert report
    assert (report.records, report.size_bytes, report.files) == (1504, 20_300, 3)
    assert str(report).splitlines() == [
        "orders-0: [5, 1505) 1,500 records, 20,000 bytes in 1 file, 0.25 s",
        "orders-1: [0, 10) 4 records, 300 bytes in 2 files, 0.25 s",
        "orders: 1,504 records, 20,300 bytes in 3 files, 0.50 s",
        "orders-0: [5, 1505) is no longer kept in Redis",
        "orders: 1 file of failed runs removed",
    ]

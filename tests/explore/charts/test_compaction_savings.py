"""What compaction saved: counted exactly where it can be, and said where it cannot."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelog.cleanup.report import CleanupReport
from lakelog.explore.charts import (
    compaction_report_rows,
    compaction_rows,
    compaction_savings,
    ingest_rates,
    segment_rows,
)
from lakelog.lakelog import Lakelog

pytest.importorskip("plotly")


def fill(log: Lakelog, many: int) -> None:
    """Four keys over and over, in two partitions, archived."""
    with log.producer() as producer:
        for nth in range(many):
            producer.send("prices", b"v" * 50, key=b"k%d" % (nth % 4), partition=nth % 2)
            if nth % 20 == 19:
                producer.flush()
    log.archive("prices")


@pytest.fixture
def reports(log: Lakelog) -> list[CleanupReport]:
    """Of two runs."""
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": 0.01,
        "internal.segment.bytes": 1_500,
        "local.retention.ms": 0,
    }
    log.topics.create("prices", 2, settings)
    found = []
    for _ in range(2):
        fill(log, 400)
        found += log.cleanup("prices")
    return found


def test_the_index_counts_what_was_appended_and_what_is_left(log, reports):
    prices = log.log("prices")
    rows = compaction_rows(prices).to_pylist()

    assert [row["records_before"] for row in rows] == [
        offsets.archived_end for offsets in prices.offsets().values()
    ]
    assert [row["records_after"] for row in rows] == [
        prices.read(n, end=prices.offsets()[n].archived_end).to_arrow().num_rows for n in range(2)
    ]
    assert rows[0]["records_after"] < 50
    assert {row["bytes_before"] for row in rows} == {None}
    assert sum(row["bytes_after"] for row in rows) == sum(
        row["size_bytes"] for row in segment_rows(prices).to_pylist() if row["tier"] == "cold"
    )


def test_reports_add_up_over_runs(reports):
    rows = {row["partition"]: row for row in compaction_report_rows(reports).to_pylist()}

    for partition in range(2):
        runs = [
            one
            for report in reports
            for one in report.compacted
            if one.topic_partition.partition == partition
        ]
        assert len(runs) == 2
        row = rows[partition]
        assert row["records_after"] == runs[-1].records_kept == 2
        assert row["records_before"] - row["records_after"] == sum(
            run.records_dropped for run in runs
        )
        assert row["bytes_before"] - row["bytes_after"] == sum(run.bytes_dropped for run in runs)


def test_bars_are_shares_by_bytes_where_bytes_are_known(log, reports):
    by_bytes = compaction_savings(table := compaction_report_rows(reports))
    by_records = compaction_savings(compaction_rows(log.log("prices")))

    left, gone = by_bytes.data
    rows = table.to_pylist()
    assert list(left.x) == pytest.approx(
        [100 * row["bytes_after"] / row["bytes_before"] for row in rows], abs=0.01
    )
    assert [x + y for x, y in zip(left.x, gone.x, strict=True)] == pytest.approx([100, 100])
    assert [list(row[:3]) for row in left.customdata] == [
        [n, row["records_before"], row["records_after"]] for n, row in enumerate(rows)
    ]
    assert by_bytes.layout.xaxis.title.text.startswith("bytes left")
    assert by_records.layout.xaxis.title.text.startswith("records left")
    assert "prices: compaction left" in by_records._message


def test_a_segment_that_was_compacted_says_how_much(log, reports):
    cold = [row for row in segment_rows(log.log("prices")).to_pylist() if row["tier"] == "cold"]
    cleaned = [row for row in cold if row["state"] == "cleaned"]
    assert cleaned
    for row in cleaned:
        whole = row["end_offset"] - row["base_offset"]
        assert row["compacted"] == pytest.approx(1 - row["records"] / whole)


def test_the_ingest_rate_counts_what_compaction_removed_since(log, reports):
    records = ingest_rates(log.log("prices"))["records"].to_pylist()
    assert sum(records) == pytest.approx(800)


def test_a_topic_that_is_not_compacted_lost_nothing(full):
    figure = compaction_savings(compaction_rows(full.log))
    assert list(figure.data[0].x) == [100]
    assert figure._message == "orders: compaction removed nothing: all 300 records are there"


def test_a_gap_inside_is_not_what_compaction_removed(full):
    full.lose_tail()
    full.append(20)
    full.archive()

    (row,) = compaction_rows(full.log).to_pylist()

    assert (row["records_before"], row["records_after"]) == (420, 420)


def test_nothing_archived_is_said(bench):
    figure = compaction_savings(compaction_rows(bench.log))
    assert not figure.data
    assert "there is no partition to compare" in figure.layout.title.text
    assert isinstance(figure._table, pa.Table)

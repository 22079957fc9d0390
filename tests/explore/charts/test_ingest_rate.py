"""The ingest rate: every record is counted once, in its time, and no more is said than is known."""

from __future__ import annotations

import numpy as np
import pytest

from lakelog.cold.change import Change, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.errors import InvalidArgumentError
from lakelog.explore import record_times
from lakelog.explore.charts import ingest_rate, ingest_rates

pytest.importorskip("plotly")
EPOCH_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def minutes(bench, *counts: int) -> None:
    """So many records in each minute, a second apart, two a call; the last two not archived."""
    for minute, many in enumerate(counts):
        at = EPOCH_MS + minute * MINUTE_MS
        base = bench.offsets.log_end
        for _ in range(many // 2):
            bench.append(2, times=lambda o, at=at, base=base: at + 1000 * (o - base))
        if minute == len(counts) - 3:
            bench.archive()


def test_records_of_both_tiers_are_counted_in_their_minute(make_bench):
    bench = make_bench(**{"internal.segment.bytes": 2_000, "index.interval.bytes": 1})
    minutes(bench, 60, 0, 30, 60, 60)

    table = ingest_rates(bench.log, start=EPOCH_MS, end=EPOCH_MS + 5 * MINUTE_MS, bins=5)

    assert table["records"].to_pylist() == pytest.approx([60, 0, 30, 60, 60], abs=2)
    assert table["seconds"].to_pylist() == [60] * 5
    assert sum(table["records"].to_pylist()) == pytest.approx(bench.offsets.log_end)
    assert table["spread_seconds"].to_pylist()[1] is None


@pytest.mark.parametrize("strays", [0, 1])
def test_the_time_of_records_in_one_entry_is_drawn_from_the_first_to_the_last(make_bench, strays):
    """Redis knows of an entry the time of its last record alone."""
    anytime = {"message.timestamp.after.max.ms": 2**62}
    bench = make_bench(**{"internal.segment.bytes": 1_000_000, **anytime})
    for _ in range(2):
        bench.append(1_000, times=lambda offset: EPOCH_MS + offset * MINUTE_MS)
    if strays:
        bench.append(strays, times=lambda _: EPOCH_MS * 2)

    table = ingest_rates(bench.log)

    start, seconds = table["start"].to_pylist(), table["seconds"].to_pylist()
    assert start[0].timestamp() * 1000 == EPOCH_MS
    assert start[-1].timestamp() + seconds[-1] == pytest.approx(
        EPOCH_MS / 1000 + 2_000 * 60, abs=60
    )
    assert sum(table["records"].to_pylist()) == pytest.approx(2_000)


def test_a_lost_tail_is_not_ingest(full):
    full.lose_tail()
    full.append(20)
    full.archive()

    records = ingest_rates(full.log)["records"].to_pylist()

    assert sum(records) == pytest.approx(420)


def test_deleted_records_are_not_ingest(full):
    for log_start in (50, 205, 350):
        full.log.raise_log_start(0, log_start)
        records = ingest_rates(full.log)["records"].to_pylist()
        assert sum(records) == pytest.approx(400 - log_start)


@pytest.mark.parametrize("emptied", ["the first", "one in between", "the last"])
def test_what_compaction_emptied_was_ingest(make_bench, emptied):
    bench = make_bench(**{"internal.segment.bytes": 2_000})
    bench.appends(12)
    bench.archive()
    bench.trim(240)
    bench.appends(2)
    snapshot = bench.table.snapshot()
    segments = snapshot.files.segments(0)
    at = {"the first": 0, "one in between": 2, "the last": -2}[emptied]
    segment = segments[at]
    assert len(segments) > 4
    gone = OffsetSet.of(range(segment.base_offset, segment.end_offset))
    rewrite = Rewrite(bench.tp, segment.base_offset, segment.files, gone, delete_horizon_ms=1)
    bench.table.apply(Change((rewrite,), segment.files), snapshot)
    assert bench.table.snapshot().files.segments(0)[at].records == 0

    table = ingest_rates(bench.log, bins=4)

    assert sum(table["records"].to_pylist()) == pytest.approx(280)


def test_a_record_of_2099_is_noted_not_drawn(make_bench):
    bench = make_bench(**{"message.timestamp.after.max.ms": 2**62})
    bench.appends(200, times=lambda offset: EPOCH_MS + 10 * offset)
    bench.append(1, times=lambda _: 4_070_908_800_000)

    table = ingest_rates(bench.log)

    assert max(table["start"].to_pylist()).year == 2023
    assert "outside this time" in ingest_rate(table).layout.title.text
    everything = ingest_rates(bench.log, start=EPOCH_MS)
    assert sum(everything["records"].to_pylist()) == pytest.approx(4001)


def bursts(bench) -> list[int]:
    """Records at times that a segment's first and last do not tell; all in one segment."""
    times = [EPOCH_MS + 1000 * ((7 * n) % 40 if n % 3 else 50) for n in range(60)]
    times += [EPOCH_MS + 100_000]
    bench.append(len(times), times=times.__getitem__)
    return times


@pytest.mark.parametrize("archived", [True, False])
def test_a_segment_longer_than_a_step_is_counted_record_by_record(make_bench, archived):
    bench = make_bench(**{"internal.segment.bytes": 100_000})
    times = bursts(bench)
    if archived:
        bench.archive()
        bench.trim(len(times))

    table = ingest_rates(bench.log, start=EPOCH_MS, end=EPOCH_MS + 110_000, bins=11)

    truth, _ = np.histogram(times, EPOCH_MS + 10_000 * np.arange(12))
    assert table["records"].to_pylist() == truth.tolist()
    assert all(table["exact"].to_pylist())
    assert ingest_rate(table)._message == (
        "orders: 33 records/min on average, 2023-11-14 22:13:20 to 22:15:10 UTC; busiest are the "
        "10 s from 2023-11-14 22:14:10, with 120 records/min"
    )


def test_no_maximum_is_named_that_the_index_does_not_know(make_bench, monkeypatch):
    bench = make_bench(**{"internal.segment.bytes": 100_000})
    times = bursts(bench)
    bench.archive()
    bench.trim(len(times))
    budget = record_times.Budget(len(times) - 1, 0, 100, 0)
    monkeypatch.setattr(record_times, "CHART", budget)

    table = ingest_rates(bench.log, start=EPOCH_MS, end=EPOCH_MS + 110_000, bins=11)

    assert sum(table["records"].to_pylist()) == pytest.approx(len(times))
    assert not any(table["exact"].to_pylist())
    assert "busiest" not in ingest_rate(table)._message


def test_of_redis_no_more_bytes_are_read_than_the_budget_has(make_bench, monkeypatch):
    bench = make_bench(**{"internal.segment.bytes": 2_000})
    for _ in range(20):
        bench.append(10, times=lambda offset: EPOCH_MS + 1000 * offset)
    held = sum(segment.size_bytes for segment in bench.offsets.segments)
    reads = []
    of_log = type(bench.log).read

    def read(log, partition, start, end):
        reads.append(end - start)
        return of_log(log, partition, start, end)

    monkeypatch.setattr(type(bench.log), "read", read)
    for share, most in ((0.4, 80), (1.1, 200)):
        reads.clear()
        budget = record_times.Budget(1_000, 1_000, 100, 0, hot_bytes=held * share)
        monkeypatch.setattr(record_times, "CHART", budget)

        table = ingest_rates(bench.log)

        assert 0 < sum(reads) <= most
        assert sum(table["records"].to_pylist()) == pytest.approx(200)
    assert sum(reads) == 200


def test_what_is_archived_is_not_read_from_redis_too(make_bench, monkeypatch):
    bench = make_bench(**{"internal.segment.bytes": 2_000})
    for _ in range(20):
        bench.append(10, times=lambda offset: EPOCH_MS + 1000 * offset)
    bench.archive()
    monkeypatch.delattr(type(bench.log), "read")

    table = ingest_rates(bench.log)

    assert all(table["exact"].to_pylist())
    assert sum(table["records"].to_pylist()) == 200


def test_what_compaction_took_is_counted_beside_what_it_left(make_bench):
    bench = make_bench(**{"internal.segment.bytes": 2_000})
    bench.appends(12, times=lambda offset: EPOCH_MS + 1000 * offset)
    bench.archive()
    bench.trim(240)
    snapshot = bench.table.snapshot()
    for segment in snapshot.files.segments(0)[:3]:
        gone = OffsetSet.of(o for o in range(segment.base_offset, segment.end_offset) if o % 5)
        rewrite = Rewrite(bench.tp, segment.base_offset, segment.files, gone, delete_horizon_ms=1)
        bench.table.apply(Change((rewrite,), segment.files), bench.table.snapshot())

    table = ingest_rates(bench.log, start=EPOCH_MS, end=EPOCH_MS + 240_000, bins=24)

    assert table["records"].to_pylist() == pytest.approx([10] * 24, abs=5)
    assert sum(table["records"].to_pylist()) == pytest.approx(240)
    assert not any(table["exact"].to_pylist())  # what is gone may have had any time
    assert "busiest" not in ingest_rate(table)._message


def test_the_figure_draws_the_sum_of_the_partitions_in_one_unit():
    import pyarrow as pa

    from lakelog.explore.charts.ingest_rate import RATES

    start = pa.array([0, 0, 10_000_000, 10_000_000]).cast(RATES.field("start").type)
    records = pa.array([1.0, 3.0, 0.0, 6.0])
    table = pa.table(
        [
            pa.array([0, 1, 0, 1], pa.int32()),
            start,
            pa.array([10.0] * 4),
            records,
            pa.array([0.1, 0.3, 0.0, 0.6]),
            pa.array([10.0, 10.0, None, 10.0]),
            pa.array([True] * 4),
        ],
        schema=RATES,
    )
    figure = ingest_rate(table)

    total, busiest = figure.data
    assert list(total.x) == [0, 10_000, 20_000]
    assert list(total.y) == [24, 36, 36]
    assert list(busiest.y) == [18, 36, 36]
    assert figure.layout.yaxis.title.text == "records per minute"
    assert "records/min" in total.hovertemplate
    assert figure._message == (
        "30 records/min on average, 1970-01-01 00:00:00 to 00:00:20 UTC; busiest are the 10 s from "
        "1970-01-01 00:00:10, with 36 records/min; partition 1 takes 90 %"
    )


def test_nothing_to_count_is_said(bench):
    figure = ingest_rate(ingest_rates(bench.log))
    assert not figure.data
    assert "no records with a timestamp" in figure.layout.title.text


def test_a_time_that_is_none_is_refused(bench):
    with pytest.raises(InvalidArgumentError, match="ends before it begins"):
        ingest_rates(bench.log, start=10, end=5)
    with pytest.raises(InvalidArgumentError, match="no time zone"):
        ingest_rates(bench.log, start="2026-01-01T00:00:00")
    with pytest.raises(InvalidArgumentError, match="bins=0"):
        ingest_rates(bench.log, bins=0)

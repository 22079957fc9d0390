import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.errors import (
    ContradictionError,
    CorruptRecordError,
    InvalidArgumentError,
    MissingFileError,
    RecoveryNeededError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.config import EntryFormat
from lakelog.values.offsets import LogOffsets
from lakelog.values.topic_partition import OffsetRange


def recovered_end(bench, at_least):
    """Recovers partition 0; where the log goes on, above all that may have been handed out."""
    bench.log.recover(0, at_least)
    end = bench.log.offsets()[0].log_end
    assert end > at_least
    return end


def walk(log, offset, *, partition=0, max_bytes=1 << 20):
    """Fetches up to the log end: the offsets, and the gaps that were reported."""
    offsets, gaps = [], []
    while True:
        step = log.fetch(partition, offset, max_bytes=max_bytes)
        offsets += step.records.column("offset").to_pylist()
        gaps += step.gaps
        if step.next_offset == offset:
            return offsets, gaps
        offset = step.next_offset


@pytest.fixture
def robbed(make_bench, make_redis):
    """A log that lost the tail [6, 10) of its server; cold holds [0, 8)."""
    server = make_redis(appendfsync="no")
    bench = make_bench(url=server.url)
    bench.append(range(6))
    bench.archive()
    size = server.append_only_size()
    bench.append(range(6, 10))
    bench.archive(8)
    server.cut_append_only_file(to_size=size)
    server.start()
    return bench


@pytest.mark.parametrize("tiered", [True, False], ids=["tiered", "untiered"])
def test_a_gap_is_skipped_and_reported(make_bench, tiered, caplog):
    bench = make_bench(tiered=tiered)
    bench.append(range(5))
    gap = OffsetRange(5, recovered_end(bench, 7))
    bench.append([9])

    assert walk(bench.log, 0) == ([0, 1, 2, 3, 4, gap.end], [gap])
    assert walk(bench.log, gap.start + 9) == ([gap.end], [OffsetRange(14, gap.end)])
    assert f"offsets [5, {gap.end}) are skipped" in caplog.text


def test_what_cold_holds_of_a_lost_tail_is_read_before_recovery(robbed):
    offsets = robbed.log.offsets()[0]

    assert (offsets.archived_end, offsets.log_end, offsets.recovered) == (8, 8, False)
    assert walk(robbed.log, 0) == (list(range(8)), [])
    assert list(robbed.log.read(0).records()) == robbed.appended[0][:8]
    assert [step.next_offset for step in robbed.open().fetches(0, 0)][-1] == 8


def test_an_offset_above_an_unrecovered_log_end_may_come_back(robbed):
    with pytest.raises(RecoveryNeededError, match="Wait") as refused:
        robbed.log.fetch(0, 10)
    assert refused.value.retriable
    with pytest.raises(RecoveryNeededError):
        robbed.log.seek(0, 10)


def test_what_cold_holds_of_a_gap_wins(robbed):
    end = recovered_end(robbed, 10)
    robbed.append([77])
    lost = OffsetRange(8, end)

    assert robbed.log.offsets()[0].gaps == (lost,)
    for log in (robbed.log, robbed.open()):
        assert walk(log, 0) == ([*range(8), end], [lost])
        assert walk(log, 7) == ([7, end], [lost])
        assert walk(log, 9) == ([end], [OffsetRange(9, end)])

    robbed.tier(end + 1, end + 1)

    assert robbed.log.offsets()[0].gaps == (lost,)
    assert walk(robbed.open(), 0) == ([*range(8), end], [lost])


def test_recovery_does_not_give_out_offsets_below_a_log_start_that_outlived_them(
    make_bench, make_redis
):
    server = make_redis(appendfsync="no")
    bench = make_bench(url=server.url)
    bench.append(range(6))
    size = server.append_only_size()
    bench.append(range(6, 10))
    bench.log.raise_log_start(0, -1)
    server.cut_append_only_file(to_size=size)
    server.start()

    assert bench.open().offsets() == {0: LogOffsets(10, 10, 0, 10, recovered=False)}
    assert recovered_end(bench, 0) > 10


@given(max_bytes=st.integers(1, 3000), seed=st.randoms(use_true_random=False))
@settings(max_examples=12)
def test_a_trim_at_any_moment_loses_no_record(make_bench, disguised, max_bytes, seed):
    bench = make_bench()
    for _ in range(5):
        bench.append(range(8), entry_format=EntryFormat.ARROW, value_bytes=20)

    def trim():
        if seed.random() < 0.5:
            offsets = bench.log.offsets()[0]
            end = seed.randint(offsets.archived_end, offsets.log_end)
            bench.tier(end, seed.randint(min(offsets.local_log_start, end), end))

    log = bench.open(disguised(bench.hot, trim))

    assert list(log.read(0, max_bytes=max_bytes).records()) == bench.appended[0]


def test_files_that_were_rewritten_and_vacuumed_are_looked_up_anew(bench):
    bench.append(range(10))
    bench.tier(10, 10)
    snapshot = bench.table.snapshot()

    class Behind:
        """A table whose first snapshot names a file that has gone since."""

        def __init__(self):
            self.reads = 0

        def __getattr__(self, name):
            return getattr(bench.table, name)

        def snapshot(self, newer_than):
            if newer_than is None:
                return snapshot
            bench.append([1])
            bench.archive()
            return bench.table.snapshot(newer_than)

        def read(self, *args):
            self.reads += 1
            if self.reads == 1:
                raise MissingFileError("gone", path="x")
            return bench.table.read(*args)

    log = bench.open()
    log._tiers.table = log._tiers.rows = Behind()

    assert list(log.read(0, 0, 10).records()) == bench.appended[0][:10]


def test_a_file_that_is_missing_for_good_is_an_error(bench):
    bench.append(range(10))
    bench.tier(10, 10)
    for file in bench.root.rglob("archive-*.parquet"):
        file.unlink()

    with pytest.raises(MissingFileError):
        bench.open().fetch(0, 3)


def test_a_file_without_the_records_it_should_hold_is_a_contradiction(bench):
    bench.append(range(10))
    bench.tier(10, 10)

    class Emptied:
        def __getattr__(self, name):
            return getattr(bench.table, name)

        def read(self, *_):
            return iter(())

    log = bench.open()
    log._tiers.table = log._tiers.rows = Emptied()

    with pytest.raises(
        ContradictionError, match=r"offset 3 of .* is in neither tier.*Is this the cold root"
    ):
        log.fetch(0, 3)


def test_what_is_damaged_in_hot_is_read_from_cold_while_cold_has_it(bench, redis_client, caplog):
    bench.append(range(10))
    bench.archive(6)
    stream = f"lakelog:stream:{bench.topic.name}:0"
    redis_client.xdel(stream, "3-1", "7-1")

    assert [r.offset for r in bench.log.read(0, 0, 7).records()] == list(range(7))
    assert "trying the cold tier from offset" in caplog.text
    with pytest.raises(CorruptRecordError, match="holds nothing for offsets 7"):
        list(bench.log.read(0))


def test_each_file_of_cold_is_read_once_by_a_whole_walk(bench):
    bench.append(range(40), entry_format=EntryFormat.ARROW, value_bytes=100)
    bench.tier(40, 40)
    calls = []

    class Counted:
        def __getattr__(self, name):
            return getattr(bench.table, name)

        def read(self, files, start, end):
            calls.append((start, end))
            return bench.table.read(files, start, end)

    log = bench.open()
    log._tiers.table = log._tiers.rows = Counted()
    steps = list(log.fetches(0, 0, max_bytes=200))

    files = bench.table.snapshot().files.of_partition(0)
    assert calls == [(file.start_offset, file.end_offset) for file in files]
    assert len(steps) > len(files)
    assert steps[-1].next_offset == 40


@pytest.mark.parametrize("partition", [1, -1, True, "0", 0.0])
def test_a_partition_that_is_not_there_is_refused(bench, partition):
    for ask in (
        lambda: bench.log.fetch(partition, 0),
        lambda: bench.log.seek(partition, 0),
        lambda: bench.log.read(partition),
        lambda: bench.log.offsets([partition]),
        lambda: bench.log.raise_log_start(partition, 0),
    ):
        with pytest.raises(UnknownTopicOrPartitionError):
            ask()


@pytest.mark.parametrize("max_bytes", [0, -1, 1.5, True, None])
def test_a_limit_that_is_no_number_of_bytes_is_refused(bench, max_bytes):
    for ask in (bench.log.fetch, bench.log.read):
        with pytest.raises(InvalidArgumentError, match="max_bytes"):
            ask(0, 0, max_bytes=max_bytes)

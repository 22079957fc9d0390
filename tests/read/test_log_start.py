import pytest

from lakelog.cold.change import Change, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import LogStart
from lakelog.errors import (
    CommitConflictError,
    CorruptRecordError,
    OffsetOutOfRangeError,
    PolicyViolationError,
)


def test_it_gives_up_what_is_damaged_too(bench, redis_client):
    bench.append(range(10))
    redis_client.xdel(f"lakelog:stream:{bench.topic.name}:0", "5-1")
    with pytest.raises(CorruptRecordError, match="skip add"):
        bench.archive()

    bench.log.raise_log_start(0, 6)

    bench.archive()
    assert [r.offset for r in bench.log.read(0).records()] == [6, 7, 8, 9]


@pytest.mark.parametrize("offset", [11, -2])
def test_it_cannot_pass_the_log_end(bench, offset):
    bench.append(range(10))

    with pytest.raises(OffsetOutOfRangeError, match="out of range"):
        bench.log.raise_log_start(0, offset)
    assert bench.log.offsets()[0].log_start == 0


@pytest.mark.parametrize(("policy", "refused"), [("compact", True), ("compact,delete", False)])
def test_a_topic_that_is_only_compacted_refuses(make_bench, policy, refused):
    bench = make_bench(**{"cleanup.policy": policy})
    bench.append(range(4))

    if refused:
        with pytest.raises(PolicyViolationError, match=r"cleanup\.policy is compact"):
            bench.log.raise_log_start(0, 2)
    else:
        assert bench.log.raise_log_start(0, 2) == 2


def test_a_repeated_call_finishes_what_an_interrupted_one_began(bench, disguised):
    """The register first: whoever finds the records gone from hot must know that they may be."""
    bench.append(range(10))
    bench.archive(6)

    class Interrupted:
        def __getattr__(self, name):
            return getattr(bench.hot, name)

        def raise_log_start(self, *_, **__):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.open(Interrupted()).raise_log_start(0, 5)
    assert bench.log.offsets()[0].log_start == 5
    assert bench.hot_offsets().local_log_start == 0

    assert bench.log.raise_log_start(0, 5) == 5
    assert bench.hot_offsets().local_log_start == 5


def test_others_that_raise_it_too_are_waited_out_but_not_for_ever(bench):
    bench.append(range(40))
    bench.archive()
    others = 0

    class Contended:
        def __getattr__(self, name):
            return getattr(bench.table, name)

        def apply(self, change, planned_on):
            nonlocal others
            if others:
                others -= 1
                snapshot = bench.table.snapshot()
                raised = Change(registers={LogStart(0): snapshot.log_start(0) + 1})
                assert not bench.table.apply(raised, snapshot).superseded
            return bench.table.apply(change, planned_on)

    log = bench.open()
    log._tiers.table = Contended()

    others = 3
    assert log.raise_log_start(0, 10) == 10
    others = 1000
    with pytest.raises(CommitConflictError, match="Nothing was deleted"):
        log.raise_log_start(0, 39)
    assert 10 < bench.log.offsets()[0].log_start < 39


# -- how many records that would be -----------------------------------------------------------


@pytest.mark.parametrize("tiered", [True, False], ids=["tiered", "untiered"])
def test_it_is_told_beforehand_how_many_records_would_go(make_bench, tiered):
    bench = make_bench(tiered=tiered)
    bench.append(range(40))
    if tiered:
        bench.tier(25, 15)
    bench.log.raise_log_start(0, 3)

    for offset in [*range(41), -1]:
        end = 40 if offset == -1 else max(offset, 3)
        assert bench.log.records_below(0, offset) == end - 3
    assert bench.log.offsets()[0].log_start == 3


@pytest.mark.parametrize("trimmed", [0, 5, 10])
def test_what_would_go_is_what_a_reader_gets_not_what_a_gap_or_compaction_took(bench, trimmed):
    bench.append(range(10))
    bench.archive()
    snapshot = bench.table.snapshot()
    files = tuple(snapshot.files.of_partition(0))
    without = OffsetSet.of([0, 2, 3, 7])
    rewrite = Rewrite(bench.topic.partition(0), 0, files, without)
    bench.table.apply(Change((rewrite,), files), snapshot)
    bench.log.recover(0, 12)
    end = bench.hot_offsets().log_end
    bench.append(range(3))
    bench.trim(trimmed)

    compacted = [at for at in (1, 4, 5, 6, 8, 9) if at < trimmed]  # above, hot still has them all
    left = [*compacted, *range(trimmed, 10), end, end + 1, end + 2]
    assert [record.offset for record in bench.log.read(0).records()] == left
    for offset in (0, 1, 2, 5, 8, 10, 11, 500, end, end + 1, end + 3):
        assert bench.log.records_below(0, offset) == sum(at < offset for at in left)


@pytest.mark.parametrize("offset", [11, -2])
def test_to_ask_beyond_the_log_end_is_refused_alike(bench, offset):
    bench.append(range(10))
    with pytest.raises(OffsetOutOfRangeError, match="out of range"):
        bench.log.records_below(0, offset)

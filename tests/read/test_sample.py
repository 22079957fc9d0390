import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.config import EntryFormat
from lakelog.errors import InvalidArgumentError
from lakelog.offsets import LogOffsets
from lakelog.read.sample import SAMPLED, _parts
from lakelog.record import OffsetRange, to_records

logs = st.builds(
    lambda start, length, gap: LogOffsets(
        start,
        start,
        0,
        start + length,
        gaps=(OffsetRange(start + length // 3, start + length // 3 + min(gap, length // 2)),)
        if gap and length > 4
        else (),
    ),
    st.integers(0, 50),
    st.integers(0, 300),
    st.integers(0, 40),
)


@given(partitions=st.lists(logs, min_size=1, max_size=4), n=st.integers(0, 500), seed=st.integers())
def test_a_sample_asks_for_exactly_so_many_different_offsets_outside_gaps(partitions, n, seed):
    offsets = dict(enumerate(partitions))
    held = [
        (partition, offset)
        for partition, log in offsets.items()
        for offset in range(log.log_start, log.log_end)
        if not any(gap.start <= offset < gap.end for gap in log.gaps)
    ]

    asked = [
        (partition, offset)
        for partition, part in _parts(offsets, n, random.Random(seed))
        for offset in range(*part)
    ]

    assert len(asked) == min(n, len(held))
    assert sorted(set(asked)) == asked
    assert set(asked) <= set(held)


@pytest.fixture
def wide(make_bench):
    bench = make_bench(partitions=3)
    for partition in range(3):
        bench.append(range(200), partition=partition, entry_format=EntryFormat.ARROW)
        bench.tier(150, 100, partition=partition)
    return bench


def test_a_sample_is_spread_over_partitions_and_tiers(wide):
    table = wide.log.sample(60)

    assert (table.num_rows, table.schema) == (60, SAMPLED)
    for partition in range(3):
        rows = table.filter(pc.equal(table.column("partition"), partition))
        assert rows.num_rows >= 15
        assert pc.min(rows.column("offset")).as_py() < 60
        assert pc.max(rows.column("offset")).as_py() > 140
        records = to_records(wide.topic.partition(partition), rows.drop_columns(["partition"]))
        assert records == [wide.appended[partition][record.offset] for record in records]


def test_the_same_seed_gives_the_same_sample(wide):
    assert wide.log.sample(20) == wide.log.sample(20)
    assert wide.log.sample(20) != wide.log.sample(20, seed=1)


def test_a_log_smaller_than_its_sample_is_given_whole(bench):
    bench.append(range(7))
    bench.tier(4, 2)

    assert bench.log.sample(100).column("offset").to_pylist() == list(range(7))
    assert bench.log.sample(0).num_rows == 0


def test_an_empty_log_has_an_empty_sample(bench):
    assert bench.log.sample() == pa.Table.from_batches([], schema=SAMPLED)


@pytest.mark.parametrize("n", [-1, 1.5, True, None])
def test_a_size_that_is_no_number_is_refused(bench, n):
    with pytest.raises(InvalidArgumentError):
        bench.log.sample(n)

import random

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidArgumentError
from lakelog.read.range_read import SAMPLED, _parts
from lakelog.read.stretches import Stretch
from lakelog.values.config import EntryFormat
from lakelog.values.record import to_records


@st.composite
def logs(draw):
    """Stretches of up to four partitions, dense or thinned out, with holes between them."""
    found = []
    for partition in range(draw(st.integers(1, 4))):
        at = 0
        pieces = st.tuples(st.integers(0, 40), st.integers(1, 80), st.integers(1, 80))
        for hole, length, records in draw(st.lists(pieces, max_size=4)):
            at += hole
            found.append(Stretch(partition, at, at + length, min(records, length)))
            at += length
    return found


@given(found=logs(), n=st.integers(0, 500), seed=st.integers())
def test_a_sample_asks_for_different_offsets_of_the_log_in_order(found, n, seed):
    held = [(one.partition, at) for one in found for at in range(one.start, one.end)]
    records = sum(one.records for one in found)

    asked = list(_parts(found, n, random.Random(seed)))

    offsets = [(partition, offset) for _, partition, part in asked for offset in range(*part)]
    assert sorted(set(offsets)) == offsets
    assert set(offsets) <= set(held)
    if n >= records:
        assert offsets == held
    elif all(one.records == one.end - one.start for one in found):
        assert len(offsets) == n
    assert [wanted for wanted, *_ in asked] == sorted(wanted for wanted, *_ in asked)
    assert all(wanted <= n for wanted, *_ in asked)


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


@pytest.mark.parametrize("n", [-1, 1.5, True, None, 1 << 63])
def test_a_size_that_is_no_number_is_refused(bench, n):
    with pytest.raises(InvalidArgumentError):
        bench.log.sample(n)

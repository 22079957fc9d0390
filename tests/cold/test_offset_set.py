"""`OffsetSet` against Python's own sets."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.offset_set import OffsetSet
from lakelog.values.record import MAX_OFFSET

offsets = st.one_of(st.integers(0, 300), st.integers(0, MAX_OFFSET))


@given(members=st.sets(offsets), others=st.lists(offsets), more=st.sets(offsets))
def test_it_answers_as_a_set_does(members, others, more):
    found = OffsetSet.of(pa.array(sorted(members, reverse=True), pa.int64()))
    asked = [*members, *others]
    assert len(found) == len(members)
    assert list(found) == sorted(members)
    assert found.contains(pa.array(asked, pa.int64())).to_pylist() == [
        offset in members for offset in asked
    ]
    assert set(OffsetSet.union([found, OffsetSet.of(more)])) == members | more
    assert list(pickle.loads(pickle.dumps(found))) == sorted(members)


@pytest.mark.parametrize(("step", "bytes_each"), [(1, 1 / 8), (2, 1 / 4), (1000, 8)])
def test_dense_offsets_take_a_bit_and_sparse_ones_eight_bytes(step, bytes_each):
    size = len(pickle.dumps(OffsetSet.of(np.arange(0, 100_000 * step, step, dtype=np.int64))))
    assert size < 100_000 * bytes_each + 1000

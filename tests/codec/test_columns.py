"""Columns made of their buffers are the ones that Arrow makes of the same values."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec.columns import binary_column, headers_column, number_column
from lakelog.values.record import HEADERS_TYPE, RECORDS, TimestampType

SOME_BYTES = st.binary(max_size=5)


def is_same(made: pa.Array, arrow: pa.Array) -> bool:
    made.validate(full=True)
    return made.type == arrow.type and made.equals(arrow)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers(values):
    for kind in (pa.int64(), RECORDS.field("timestamp").type):
        assert is_same(number_column(values, kind), pa.array(values, kind))


@given(st.lists(st.sampled_from(TimestampType)))
def test_small_numbers_and_those_with_names(values):
    arrow = pa.array([int(value) for value in values], pa.int32())
    assert is_same(number_column(values, pa.int32()), arrow)


@given(st.lists(SOME_BYTES | st.none()) | st.lists(SOME_BYTES))
def test_bytes_of_which_some_may_be_missing(values):
    assert is_same(binary_column(values), pa.array(values, pa.binary()))


@given(st.lists(st.lists(st.tuples(st.text(max_size=3), SOME_BYTES | st.none()), max_size=2)))
def test_headers_of_which_most_records_have_none(rows):
    items = [[{"key": name, "value": data} for name, data in row] for row in rows]
    assert is_same(headers_column(rows), pa.array(items, HEADERS_TYPE))


def test_no_headers_at_all():
    assert is_same(headers_column([(), ()]), pa.array([[], []], HEADERS_TYPE))

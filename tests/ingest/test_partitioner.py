"""Partitions by key are Kafka's; records without a key stick to one partition for a while."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.ingest import partitioner
from lakelog.ingest.partitioner import (
    StickyPartition,
    murmur2,
    murmur2_column,
    partition_of_key,
    partitions_of_keys,
)

# Kafka's clients UtilsTest.testMurmur2
VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), VECTORS.items())
def test_murmur2_is_kafkas(key, hashed):
    assert murmur2(key) == hashed % 2**32


def test_murmur2_of_a_column_is_kafkas():
    hashed = murmur2_column(pa.array(list(VECTORS), pa.binary()))
    assert hashed.view(np.int32).tolist() == list(VECTORS.values())


@given(
    st.lists(st.none() | st.binary(max_size=40) | st.binary(min_size=1020, max_size=1040)),
    st.integers(0, 3),
    st.integers(1, 12),
)
def test_a_column_of_keys_is_hashed_as_its_keys_are(keys, start, partitions):
    column = pa.array(keys, pa.binary()).slice(start)
    found = partitions_of_keys(column, partitions).tolist()
    expected = [None if key is None else partition_of_key(key, partitions) for key in keys[start:]]
    assert [None if key is None else p for key, p in zip(keys[start:], found, strict=True)] == (
        expected
    )


def test_a_negative_hash_gives_a_partition_as_kafkas_to_positive_does():
    assert partition_of_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


def test_few_keys_are_kept_and_those_that_come_again_go_where_they_went(monkeypatch):
    monkeypatch.setattr(partitioner, "_CACHED_KEYS", 3)
    monkeypatch.setattr(partitioner, "hashes", {})
    keys = [b"%d" % (n % 7) for n in range(50)] + [bytes(65)]
    for key in keys:
        assert partition_of_key(key, 5) == (murmur2(key) & 0x7FFFFFFF) % 5
        assert len(partitioner.hashes) <= 3
    assert bytes(65) not in partitioner.hashes  # too long to be kept


def test_a_sticky_partition_takes_its_bytes_and_gives_way_to_another():
    sticky = StickyPartition(3, stick_bytes=100, choose=random.Random(1))
    runs = [[sticky.take(40) for _ in range(3)] for _ in range(20)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(one[0] != next_one[0] for one, next_one in pairwise(runs))
    assert {run[0] for run in runs} == {0, 1, 2}


def test_the_only_partition_is_always_the_sticky_one():
    sticky = StickyPartition(1, stick_bytes=1, choose=random.Random(1))
    assert [sticky.take(10) for _ in range(3)] == [0, 0, 0]

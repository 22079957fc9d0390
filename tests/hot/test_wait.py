"""Waiting for records: woken by an append, and by nothing else."""

from __future__ import annotations

import threading

import pytest

from lakelog.errors import UnknownTopicOrPartitionError
from lakelog.hot import HotLog
from lakelog.record import TopicPartition

NOW_MS = 1_700_000_000_000
LONG_MS = 60_000  # a test that waits so long has failed


def test_what_is_there_already_is_told_at_once(make_bench):
    bench = make_bench(3)
    bench.append(NOW_MS, NOW_MS, partition=0)
    bench.append(NOW_MS, partition=2)
    positions = {bench.tp(0): 1, bench.tp(1): 0, bench.tp(2): 0}
    assert bench.hot.wait(positions, LONG_MS) == {bench.tp(0), bench.tp(2)}


@pytest.mark.parametrize("position", [0, 1, 5])
def test_time_out_is_an_empty_set(bench, position):
    if position:
        bench.append(NOW_MS)
    assert bench.hot.wait({bench.tp(): position}, 20) == set()
    assert bench.hot.wait({bench.tp(): position}, 0) == set()


def test_no_positions_wait_for_nothing(bench):
    assert bench.hot.wait({}, LONG_MS) == set()


@pytest.mark.parametrize("position", [0, 3])
def test_an_append_wakes(make_bench, position):
    bench = make_bench(2)
    for _ in range(position):
        bench.append(NOW_MS, partition=1)
    woken = []
    thread = threading.Thread(
        target=lambda: woken.append(
            bench.hot.wait({bench.tp(0): 0, bench.tp(1): position}, LONG_MS)
        )
    )
    thread.start()
    while not bench.client.info("clients")["blocked_clients"]:
        pass
    bench.append(NOW_MS, partition=1)
    thread.join()
    assert woken == [{bench.tp(1)}]


def test_what_was_trimmed_at_once_is_noticed_too(make_bench, redis_url):
    """The stream is empty then, but its end lies above the position."""
    bench = make_bench(remote_storage_enable=False, retention_ms=-1, lakelog_retention_entries=0)
    bench.append(NOW_MS)
    with_short_blocks = HotLog.connect(f"{redis_url}?socket_timeout=0.5")
    assert with_short_blocks.wait({bench.tp(): 0}, LONG_MS) == {bench.tp()}
    with_short_blocks.close()


def test_a_short_socket_timeout_ends_no_wait(make_bench, redis_url):
    bench = make_bench()
    with_short_blocks = HotLog.connect(f"{redis_url}?socket_timeout=0.5")
    assert with_short_blocks.wait({bench.tp(): 0}, 700) == set()
    with_short_blocks.close()


def test_an_unknown_partition_is_an_error(bench):
    with pytest.raises(UnknownTopicOrPartitionError):
        bench.hot.wait({TopicPartition("orders", 9): 0}, 20)

"""Waiting for records: woken by an append, and by nothing else."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelog.errors import HotTierUnavailableError, TrimmedError
from lakelog.hot import HotLog, waits
from lakelog.hot.connection import Wire
from lakelog.hot.waits import Waker
from lakelog.testing.eventually import eventually

NOW_MS = 1_700_000_000_000
LONG_MS = 60_000  # a test that waits so long has failed


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
    with_short_blocks = HotLog.connect(f"{redis_url}?socket_timeout=2")
    assert with_short_blocks.wait({bench.tp(): 0}, LONG_MS) == {bench.tp()}
    with_short_blocks.close()


def test_a_short_socket_timeout_ends_no_wait(make_bench, redis_url):
    bench = make_bench()
    with_short_blocks = HotLog.connect(f"{redis_url}?socket_timeout=2")
    assert with_short_blocks.wait({bench.tp(): 0}, 2_500) == set()
    with_short_blocks.close()


@pytest.mark.parametrize(
    ("position", "pause_s", "asks"),
    [(1, 0.0, False), (0, 0.0, True), (1, 2 * waits.FRESH_S, True)],
    ids=["the next to read", "another offset", "too late"],
)
def test_a_wait_for_one_partition_brings_what_is_read_next(
    bench, monkeypatch, position, pause_s, asks
):
    """Once, and just then: whoever reads later asks, and who came to the log end does, too."""
    now_s, asked, exchange = [0.0], [], Wire.exchange
    monkeypatch.setattr(waits.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(Wire, "exchange", lambda *of: asked.append(1) or exchange(*of))
    bench.append(NOW_MS, NOW_MS)
    assert bench.hot.wait({bench.tp(): 1}, 0) == {bench.tp()}
    bench.append(NOW_MS)
    now_s[0] += pause_s
    asked.clear()
    steps = bench.hot.read(bench.tp(), position)
    first = next(steps)
    assert (first.start_offset, bool(asked)) == (position, asks)
    assert [*steps][-1].next_offset == 3 if not asks else first.next_offset == 3


def test_what_came_before_anybody_waited_is_read_anew(bench):
    """A read that was kept may have been answered seconds ago: of a log that has changed since."""
    position = {bench.tp(): 0}
    assert bench.hot.wait(position, 20, Waker()) == set()
    bench.append(NOW_MS)
    bench.append(NOW_MS)
    bench.hot.raise_log_start(bench.tp(), 1)
    assert bench.hot.wait(position, LONG_MS, Waker()) == {bench.tp()}
    with pytest.raises(TrimmedError):
        bench.read()


def test_what_came_of_a_deleted_topic_is_not_read_of_the_next(make_bench, monkeypatch):
    monkeypatch.setattr(waits, "FRESH_S", 60.0)  # this machine may be slow
    bench = make_bench()
    bench.append(NOW_MS)
    assert bench.hot.wait({bench.tp(): 0}, 0) == {bench.tp()}
    topics = bench.hot.topics()
    topics.delete(bench.topic.name)
    bench.topic = topics.create(bench.topic.name, 1)
    bench.append(NOW_MS, NOW_MS)
    steps = bench.hot.read(bench.tp(), 0, topic_id=bench.topic.topic_id)
    assert [step.next_offset for step in steps] == [2]


# -- on a cluster, where each partition is in a slot of its own ------------------------------------


@pytest.fixture
def spread(redis_cluster, make_bench):
    """Twelve partitions over three nodes."""
    return make_bench(12, url=redis_cluster.url)


def blocked(cluster):
    found = 0
    for node in cluster.nodes:
        with node.client() as client:
            found += client.info("clients")["blocked_clients"]
    return found


def waiting(bench, positions):
    woken = []
    thread = threading.Thread(target=lambda: woken.append(bench.hot.wait(positions, LONG_MS)))
    thread.start()
    return thread, woken


def test_an_append_wakes_whichever_node_has_it(spread, redis_cluster):
    positions = {spread.tp(n): 0 for n in range(12)}
    for number in range(12):
        thread, woken = waiting(spread, positions)
        eventually(lambda: blocked(redis_cluster) == 12)
        spread.append(NOW_MS, partition=number)
        thread.join()
        assert woken == [{spread.tp(number)}]
        positions[spread.tp(number)] = 1


def test_reads_without_news_are_asked_again(spread, redis_cluster):
    positions = {spread.tp(n): 0 for n in range(12)}
    for number in range(40):
        assert spread.hot.wait(positions, 1 + number % 3) == set()
    assert blocked(redis_cluster) == 12
    spread.append(NOW_MS, partition=5)
    assert spread.hot.wait(positions, LONG_MS) == {spread.tp(5)}
    assert blocked(redis_cluster) == 11


def test_a_read_for_several_is_taken_on_for_one(spread):
    both = {spread.tp(3): 0, spread.tp(4): 0}
    assert spread.hot.wait(both, 20) == set()
    spread.append(NOW_MS, partition=3)
    assert spread.hot.wait({spread.tp(3): 0}, LONG_MS, Waker()) == {spread.tp(3)}
    assert [step.next_offset for step in spread.hot.read(spread.tp(3), 0)] == [1]


def test_reads_that_nobody_asks_again_end(spread, redis_cluster, monkeypatch):
    monkeypatch.setattr(waits, "MAX_BLOCK_MS", 50)
    for position in range(5):
        spread.hot.wait({spread.tp(n): position for n in range(12)}, 1)
    eventually(lambda: blocked(redis_cluster) == 0)
    spread.append(NOW_MS, partition=3)
    assert spread.hot.wait({spread.tp(3): 0, spread.tp(4): 0}, LONG_MS) == {spread.tp(3)}


def test_more_partitions_than_reads_are_looked_at(redis_cluster, make_bench, monkeypatch):
    monkeypatch.setattr(waits, "MAX_READS", 4)
    bench = make_bench(6, url=redis_cluster.url)
    positions = {bench.tp(n): 0 for n in range(6)}
    assert bench.hot.wait(positions, 20) == set()
    thread, woken = waiting(bench, positions)
    bench.append(NOW_MS, partition=4)
    thread.join()
    assert woken == [{bench.tp(4)}]


def test_after_a_close_a_wait_connects_anew(spread):
    positions = {spread.tp(n): 0 for n in range(12)}
    spread.hot.wait(positions, 1)
    spread.hot.close()
    spread.append(NOW_MS, partition=2)
    ready = set()
    while not ready:
        with contextlib.suppress(HotTierUnavailableError):  # of a read that the close ended
            ready = spread.hot.wait(positions, LONG_MS)
    assert ready == {spread.tp(2)}


@pytest.mark.parametrize("partitions", [1, 12])
def test_a_waker_ends_a_wait(spread, partitions):
    positions = {spread.tp(n): 0 for n in range(partitions)}
    waker = Waker()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(spread.hot.wait, positions, LONG_MS, waker)
        waker.set()
        assert waiting.result() == set()
    assert spread.hot.wait(positions, LONG_MS, waker) == set()  # nobody has taken note of it
    waker.clear()
    spread.append(NOW_MS, partition=0)
    assert spread.hot.wait(positions, LONG_MS, waker) == {spread.tp(0)}


def test_a_waker_that_is_set_again_and_again_blocks_nobody():
    waker = Waker()
    for _ in range(100_000):
        waker.set()
    waker.wait(60.0)
    while waker.is_set:
        waker.clear()
    waker.wait(0.0)


# -- what is behind a wait ----------------------------------------------------------------------


def test_the_log_end_is_not_known_before_a_server_that_restarted_is_recovered(
    make_redis, make_bench
):
    """Cold may hold more."""
    server = make_redis()
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    assert [step.at_log_end for step in bench.hot.read(bench.tp(), 0)] == [True]
    server.restart()
    assert bench.hot.wait({bench.tp(): 0}, LONG_MS) == {bench.tp()}
    (step,) = bench.hot.read(bench.tp(), 0)
    assert (step.records.num_rows, step.at_log_end) == (1, False)

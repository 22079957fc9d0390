"""Whatever fails between a producer and Redis: each record is in the log once, or its error says
whether it is surely not, or unknown.
"""

import random
import subprocess
import sys
import threading

import pytest

from lakelog import Lakelog
from lakelog.errors import (
    CommitUnknownError,
    ConcurrentChangeError,
    ContradictionError,
    DeliveryError,
    DeliveryPendingError,
    HotTierAccessError,
    HotTierFullError,
    HotTierPausedError,
    HotTierUnavailableError,
    RecoveryNeededError,
    UnknownProducerError,
)
from lakelog.testing.eventually import eventually
from lakelog.values.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)

#: How long a producer tries where the test waits for it to give up: what is to arrive before does
#: so on a busy machine, too.
SOON_MS = 2_000


# -- a network that breaks ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
@pytest.mark.parametrize("max_in_flight", [1, 5])
def test_each_record_is_in_the_log_once_and_in_order_however_the_network_breaks(
    seed, max_in_flight, make_redis, make_network, make_tier, make_producer
):
    server = make_redis()
    direct = make_tier(server.url)
    direct.topics.create("t", 2)
    network = make_network(server.port)
    faulty = make_tier(network.url)
    choose = random.Random(seed)
    producer = make_producer(faulty, batch_size=200, max_in_flight=max_in_flight)
    results = [producer.send("t", b"first", partition=p) for p in (0, 1)]
    network.plan = lambda: choose.choice(["pass", "pass", "lose", "cut", "mute"])
    results += [producer.send("t", b"%d" % n, partition=n % 2) for n in range(300)]
    bulk = producer.send_batch("t", [{"value": b"b%d" % n, "partition": n % 2} for n in range(50)])
    producer.close()
    for partition in (0, 1):
        sent = [b"first", *(b"%d" % n for n in range(partition, 300, 2))]
        sent += [b"b%d" % n for n in range(partition, 50, 2)]
        assert direct.values("t", partition) == sent
        offsets = [r.result().offset for r in results if r.result().partition == partition]
        offsets += [m.offset for m in bulk if m.partition == partition]
        assert offsets == list(range(len(sent)))


def test_a_call_without_an_answer_at_its_timeout_is_unknown_and_those_behind_it_are_not_written(
    make_redis, make_network, make_tier, make_producer
):
    server = make_redis()
    direct = make_tier(server.url)
    direct.topics.create("t")
    network = make_network(server.port)
    producer = make_producer(
        make_tier(network.url), delivery_timeout_ms=SOON_MS, linger_ms=0, max_in_flight=1
    )
    producer.send("t", b"first").result()
    network.plan = lambda: "mute"
    unknown = producer.send("t", b"unknown")
    assert network.muted.wait(60)
    network.take_down()  # nothing is sent from here on
    behind = producer.send("t", b"behind")
    errors = [unknown.exception(), behind.exception()]
    assert [(e.unknown, e.not_written) for e in errors] == [(1, 0), (0, 1)]
    assert isinstance(errors[0].last_error, HotTierUnavailableError)
    assert "may or may not be in the log" in str(errors[0])
    assert "surely not in the log" in str(errors[1])
    network.plan = lambda: "pass"
    network.bring_up()
    assert producer.send("t", b"on").result().offset == 2
    assert direct.values("t") == [b"first", b"unknown", b"on"]


def test_a_producer_goes_on_when_its_redis_comes_back(make_redis, make_tier, make_producer):
    server = make_redis(appendfsync="always")
    tier = make_tier(server.url)
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"a").result()
    server.kill()
    waiting = producer.send("t", b"b")
    with pytest.raises(TimeoutError):
        waiting.result(timeout=0.05)
    server.start()
    waiting.result()
    producer.close()
    assert tier.values("t") == [b"a", b"b"]


def test_a_topic_that_redis_cannot_name_is_asked_for_until_max_block_ms(
    make_redis, make_tier, make_producer
):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t")
    server.kill()
    with pytest.raises(HotTierUnavailableError, match="cannot reach Redis"):
        make_producer(tier, max_block_ms=30).send("t", b"a")


def test_closing_with_a_timeout_says_what_is_not_written(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"a").result()
    tier.hot.pause([T0])
    results = [producer.send("t", b"b") for _ in range(3)]
    with pytest.raises(TimeoutError, match="3 records have no answer"):
        producer.flush(timeout_ms=20)
    with pytest.raises(DeliveryError, match="3 records are surely not in the log"):
        producer.close(timeout_ms=20)
    assert {type(result.exception().last_error) for result in results} == {HotTierPausedError}
    tier.hot.resume([T0])
    assert tier.values("t") == [b"a"]


# -- a Redis that refuses ----------------------------------------------------------------------


def test_a_full_redis_takes_records_again_after_a_trim(make_redis, make_tier, make_producer):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t", config={"lakelog.entry.format": "arrow"})
    producer = make_producer(tier, compression_type="none", batch_size=16_384)
    with server.client() as client:
        producer.send("t", b"first").result()
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 2_000_000)
        values = [random.Random(n).randbytes(1000) for n in range(6000)]
        results = [producer.send("t", value) for value in values]
        while not _is_full(producer):
            threading.Event().wait(0.001)
        assert not results[-1].done()
        while not results[-1].done():  # as an archiver does
            tier.hot.trim(T0, tier.hot.offsets([T0])[T0].log_end)
            threading.Event().wait(0.001)
        client.config_set("maxmemory", 0)
    producer.close()
    assert [result.result().offset for result in results] == list(range(1, 6001))
    kept = tier.records("t")
    assert [record.value for record in kept] == values[kept[0].offset - 1 :] if kept else True


def _is_full(producer) -> bool:
    queues = list(producer._accumulator.active)
    return any(isinstance(queue.last_error, HotTierFullError) for queue in queues)


def test_a_full_redis_fails_records_at_their_timeout_as_surely_not_written(
    make_redis, make_tier, make_producer
):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t")
    producer = make_producer(tier, delivery_timeout_ms=SOON_MS)
    producer.send("t", b"first").result()
    with server.client() as client:
        client.config_set("maxmemory", 1)
        error = producer.send("t", b"a").exception()
        with pytest.raises(DeliveryError, match="full") as bulk:
            producer.send_batch("t", [b"b", b"c"])
        client.config_set("maxmemory", 0)
    assert (error.not_written, error.unknown) == (1, 0)
    assert isinstance(error.last_error, HotTierFullError)
    assert (bulk.value.batch.written, bulk.value.not_written, bulk.value.unknown) == (0, 2, 0)
    assert producer.send("t", b"on").result().offset == 1
    assert tier.values("t") == [b"first", b"on"]


def test_a_right_that_was_taken_away_fails_the_records_that_need_it(
    make_redis, make_tier, make_producer
):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"a").result()
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-xadd", "-evalsha")
        with pytest.raises(HotTierAccessError):
            producer.send("t", b"b").result()
        client.execute_command("ACL", "SETUSER", "default", "+@all")
    assert producer.send("t", b"c").result().offset == 1


@pytest.mark.parametrize("value_bytes", [10, 100_000], ids=["script", "transaction"])
def test_records_outlive_a_planned_failover(
    value_bytes, make_redis, make_network, make_tier, make_producer, redis_program
):
    """As behind a name of a managed Redis: the server that steps down keeps its connections."""
    old, new = (make_redis(program=redis_program, **{"repl-diskless-sync-delay": 0}) for _ in "ab")
    new.follow(old)
    network = make_network(old.port)
    tier = make_tier(network.url)
    tier.topics.create("t")
    producer = make_producer(tier)
    values = [b"%d" % n + bytes(value_bytes) for n in range(40)]
    results = [producer.send("t", value) for value in values[:20]]
    results[-1].result()
    with old.client() as client:
        client.execute_command("FAILOVER", "TO", "127.0.0.1", new.port)
        eventually(lambda: client.info("replication")["role"] == "slave")
    refused = producer.send("t", values[20])  # nobody has the new place yet
    with pytest.raises(DeliveryPendingError):
        refused.result(0.1)
    network.server_port = new.port
    results += [refused, *(producer.send("t", value) for value in values[21:])]
    producer.close()
    assert [make_tier(new.url).records("t")[n].offset for n in range(40)] == [
        result.result().offset for result in results
    ]
    assert make_tier(new.url).values("t") == values


# -- a Redis that forgot -----------------------------------------------------------------------


def test_a_lost_tail_uses_no_offset_twice_and_calls_without_an_answer_are_unknown(
    make_redis, make_network, make_tier, make_producer
):
    server = make_redis()
    direct = make_tier(server.url)
    direct.topics.create("t", 2)
    network = make_network(server.port)
    recovered = []

    def recover(topic_partition, at_least):
        recovered.append((topic_partition, at_least))
        direct.hot.recover(topic_partition, at_least)

    producer = make_producer(make_tier(network.url), recover=recover, linger_ms=0)
    kept = [producer.send("t", b"kept %d" % n, partition=0).result().offset for n in range(3)]
    producer.send("t", b"kept", partition=1).result()
    size = server.append_only_size()
    lost = [producer.send("t", b"lost %d" % n, partition=0).result().offset for n in range(3)]
    network.plan = lambda: "mute"
    unknown = producer.send("t", b"unknown", partition=0)
    assert network.muted.wait(60)
    behind = producer.send("t", b"behind", partition=0)
    server.cut_append_only_file(to_size=size)
    network.plan = lambda: "pass"
    server.start()
    error = unknown.exception()
    assert isinstance(error, DeliveryError)
    assert (error.not_written, error.unknown) == (0, 1)
    assert isinstance(error.last_error, UnknownProducerError)
    behind_error = behind.exception()
    if behind_error is not None:  # it was sent together with a resend of the first
        assert behind_error.unknown == 1
    on = producer.send("t", b"on", partition=0).result().offset
    assert recovered[0] == (T0, 6)
    assert on > max(kept + lost)
    values = direct.values("t")
    assert values[:3] == [b"kept 0", b"kept 1", b"kept 2"]
    assert values[3:] == [*([b"behind"] if behind_error is None else []), b"on"]


def test_a_deleted_producer_state_starts_a_new_epoch_for_what_was_never_sent(
    tier, make_producer, redis_client
):
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"a").result()
    redis_client.delete("{lakelog:stream:t:0}:producers")
    producer.send("t", b"b").result()
    producer.send("t", b"c").result()
    assert tier.values("t") == [b"a", b"b", b"c"]


def _restart(server) -> None:
    server.kill()
    server.start()


def test_recovery_is_tried_until_it_succeeds(make_redis, make_tier, make_producer):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t")
    failures = [CommitUnknownError("away"), CommitUnknownError("away")]

    def recover(topic_partition, at_least):
        if failures:
            raise failures.pop()
        tier.hot.recover(topic_partition, at_least)

    producer = make_producer(tier, recover=recover)
    producer.send("t", b"a").result()
    _restart(server)
    producer.send("t", b"b").result()
    assert failures == []
    assert tier.values("t") == [b"a", b"b"]


#: Takes the lock under which a server is taken over, as whoever recovers a partition does.
_TAKE_OVER = """
import sys, time
from lakelog.hot import HotLog
from lakelog.hot.recovery import Recovery

def hold(*_):
    print("held", flush=True)
    time.sleep(600)

Recovery._step_each = hold
hot = HotLog.connect(sys.argv[1])
hot.resume(hot.topics().get("held").topic_partitions())
"""


def test_a_lock_of_a_process_that_was_killed_holds_back_its_partition_alone(make_redis, tmp_path):
    server = make_redis()
    with Lakelog.connect(server.url, str(tmp_path)) as lake, server.client() as client:
        for name in ("held", "free"):
            lake.topics.create(name)
        producer = lake.producer(linger_ms=0, delivery_timeout_ms=SOON_MS)
        for name in ("held", "free"):
            producer.send(name, b"before").result()
        lake.hot.pause([TopicPartition("held", 0), TopicPartition("free", 0)])
        server.restart()
        lake.hot.resume([TopicPartition("free", 0)])
        other = subprocess.Popen(
            [sys.executable, "-c", _TAKE_OVER, server.url], stdout=subprocess.PIPE, text=True
        )
        with other:
            assert other.stdout.readline() == "held\n"
            other.kill()
        held = producer.send("held", b"after")
        free = [producer.send("free", b"after").result().offset for _ in range(3)]
        error = held.exception()
        while isinstance(error, DeliveryError) and isinstance(
            error.last_error, RecoveryNeededError
        ):
            error = producer.send("held", b"after").exception()  # it was cut before the lock
        assert client.keys("*:resume:*"), "the lock is gone, so this says nothing"
        assert isinstance(error, DeliveryError)
        assert (error.not_written, error.unknown) == (1, 0)
        cause = error.last_error
        assert isinstance(cause, ConcurrentChangeError)
        assert cause.retriable
        assert cause.holder.startswith(f"process {other.pid} on ")
        assert cause.holder in str(error)
        assert "UTC" in str(error)
        assert free == [1, 2, 3]
        client.delete(*client.keys("*:resume:*"))  # as if its time were over
        # The pause after the last failure may be longer than this producer's delivery timeout.
        eventually(lambda: producer.send("held", b"later").exception() is None)
        assert lake.log("held").offsets()[0].log_end == 2


def test_a_producer_is_closed_though_a_recovery_hangs(make_redis, make_tier, make_producer):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t")
    begun, may_end = threading.Event(), threading.Event()

    def recover(topic_partition, at_least):
        begun.set()
        assert may_end.wait(60)

    producer = make_producer(tier, recover=recover)
    producer.send("t", b"before").result()
    _restart(server)
    result = producer.send("t", b"after")
    assert begun.wait(60)
    with pytest.raises(DeliveryError):
        producer.close(timeout_ms=0)
    assert not may_end.is_set()
    may_end.set()
    assert result.exception().not_written == 1


def test_a_recovery_that_cannot_succeed_fails_the_records_with_its_error(
    make_redis, make_tier, make_producer
):
    server = make_redis()
    tier = make_tier(server.url)
    tier.topics.create("t")

    def recover(topic_partition, at_least):
        raise ContradictionError("somebody restored the table")

    producer = make_producer(tier, recover=recover)
    producer.send("t", b"a").result()
    _restart(server)
    result = producer.send("t", b"b")
    error = result.exception()
    cause = error.last_error if isinstance(error, DeliveryError) else error
    assert isinstance(cause, ContradictionError)

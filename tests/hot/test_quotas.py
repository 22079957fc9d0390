"""Quotas of a keyspace: what its topics may hold and append, checked by each append itself."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from lakelog.codec import ProducedBatch
from lakelog.errors import QuotaExceededError, ThrottlingQuotaExceededError
from lakelog.hot import AppendResult
from lakelog.values.config import QUOTA_BYTE_RATE, QUOTA_HOT_BYTES, QUOTA_TOPICS

PARTITIONS = 6
NOW_MS = 1_700_000_000_000
SIZE = 1000

_producers = itertools.count(5_000)


@pytest.fixture(params=["server", "cluster"])
def bench(request, make_bench):
    fixture = "redis_url" if request.param == "server" else "redis_cluster"
    found = request.getfixturevalue(fixture)
    return make_bench(PARTITIONS, url=found if isinstance(found, str) else found.url)


def sized(batch: ProducedBatch, size_bytes: int) -> ProducedBatch:
    entries = tuple(replace(entry, size_bytes=size_bytes) for entry in batch.entries)
    return replace(batch, entries=entries)


def append(bench, make_batch, partition=0, size_bytes=SIZE):
    batch = make_batch([NOW_MS], producer_id=next(_producers))
    return bench.send(sized(batch, size_bytes), partition)


def held(bench):
    return sum(bench.offsets(partition).size_bytes for partition in range(PARTITIONS))


def filled(bench, make_batch, partitions):
    """Appends round and round until no partition takes more; how many calls were taken."""
    taken = 0
    left = list(partitions)
    while left:
        for partition in list(left):
            bench.clock.advance(1001)  # what is free is counted anew once a second
            try:
                append(bench, make_batch, partition)
                taken += 1
            except QuotaExceededError:
                left.remove(partition)
    return taken


def test_all_partitions_share_the_hot_bytes_whichever_ask(bench, make_batch):
    bench.hot.topics().set_defaults({QUOTA_HOT_BYTES: 50 * SIZE})
    for partition in range(PARTITIONS):
        append(bench, make_batch, partition)
    assert filled(bench, make_batch, [0]) == 50 - PARTITIONS  # one takes all that is left
    assert held(bench) == 50 * SIZE
    with pytest.raises(QuotaExceededError) as refused:
        append(bench, make_batch, 1)
    assert (refused.value.used, refused.value.limit) == (50 * SIZE, 50 * SIZE)
    assert refused.value.quota == QUOTA_HOT_BYTES
    assert refused.value.retriable

    # what one frees, another takes
    bench.hot.trim(bench.tp(0), bench.offsets(0).log_end)
    bench.clock.advance(1001)
    assert filled(bench, make_batch, range(1, PARTITIONS)) == 50 - PARTITIONS + 1


def test_a_lower_quota_counts_at_once_and_none_lifts_it(bench, make_batch):
    topics = bench.hot.topics()
    topics.set_defaults({QUOTA_HOT_BYTES: 1000 * SIZE})
    append(bench, make_batch)
    topics.set_defaults({QUOTA_HOT_BYTES: 2 * SIZE})  # although partition 0 was allowed far more
    assert filled(bench, make_batch, range(PARTITIONS)) == 1
    topics.set_defaults({QUOTA_HOT_BYTES: None})
    for partition in range(PARTITIONS):
        append(bench, make_batch, partition)
    assert held(bench) == (2 + PARTITIONS) * SIZE


def test_what_was_there_before_the_quota_counts(bench, make_batch):
    for partition in range(PARTITIONS):
        append(bench, make_batch, partition, 10 * SIZE)
    bench.hot.topics().set_defaults({QUOTA_HOT_BYTES: 10 * PARTITIONS * SIZE + SIZE})
    assert filled(bench, make_batch, range(PARTITIONS)) == 1


def test_allowances_that_redis_lost_are_given_again(bench, make_batch):
    bench.hot.topics().set_defaults({QUOTA_HOT_BYTES: 50 * SIZE})
    for partition in range(PARTITIONS):
        append(bench, make_batch, partition)
    keys = bench.hot._keys
    bench.hot.connections.for_key(keys.topics).call(("DEL", keys.quotas))
    assert filled(bench, make_batch, range(PARTITIONS)) == 50 - PARTITIONS
    assert held(bench) == 50 * SIZE


def test_a_deleted_topic_frees_what_it_held(bench, make_batch):
    topics = bench.hot.topics()
    other = topics.create("other")
    topics.set_defaults({QUOTA_HOT_BYTES: 20 * SIZE})
    batch = make_batch([NOW_MS], producer_id=next(_producers))
    bench.hot.append(other.partition(0), other.topic_id, sized(batch, 19 * SIZE))
    assert filled(bench, make_batch, [0]) == 1
    topics.delete("other")
    bench.clock.advance(1001)
    assert filled(bench, make_batch, [0]) == 19


def test_appends_keep_to_the_rate_on_average_and_a_large_one_is_waited_for(bench, make_batch):
    rate = 10 * SIZE
    bench.hot.topics().set_defaults({QUOTA_BYTE_RATE: rate})
    began_ms, appended, refused = bench.clock.now_ms(), 0, []
    for number in range(200):
        size_bytes = 25 * SIZE if number % 50 == 0 else SIZE  # one larger than a second's
        while True:
            try:
                append(bench, make_batch, number % PARTITIONS, size_bytes)
                break
            except ThrottlingQuotaExceededError as error:
                refused.append(error)
                bench.clock.advance(error.throttle_time_ms)
        appended += size_bytes
        seconds = (bench.clock.now_ms() - began_ms) / 1000
        assert appended <= rate * (seconds + 1) + 25 * SIZE
    assert {error.limit for error in refused} == {rate}
    assert min(error.throttle_time_ms for error in refused) >= 1
    # nothing is throttled for longer than it has to: what a partition was given and did not use
    assert rate * seconds <= appended + PARTITIONS * rate / 20 + SIZE


def test_calls_behind_a_refused_one_keep_their_order(bench, make_batch):
    bench.hot.topics().set_defaults({QUOTA_HOT_BYTES: 100 * SIZE})
    producer = next(_producers)
    calls = [
        bench.call(sized(make_batch([NOW_MS], producer_id=producer, first_sequence=n), SIZE), p)
        for n in range(5)
        for p in range(PARTITIONS)
    ]
    answers = bench.hot.append_all(calls)
    assert all(isinstance(answer, AppendResult) for answer in answers)
    offsets = [answer.base_offset for answer in answers]
    assert offsets == [n for n in range(5) for _ in range(PARTITIONS)]


def test_a_quota_costs_an_append_no_round_trip_of_its_own(make_bench, make_batch):
    bench = make_bench()

    def commands(count):
        """How many scripts so many appends took."""
        for _ in range(count):
            append(bench, make_batch)
        stats = bench.client.info("commandstats")
        bench.client.config_resetstat()
        return stats["cmdstat_evalsha"]["calls"]

    append(bench, make_batch)
    bench.client.config_resetstat()
    assert commands(300) == 300
    quotas = {QUOTA_HOT_BYTES: 10_000_000 * SIZE, QUOTA_BYTE_RATE: 1_000_000 * SIZE}
    bench.hot.topics().set_defaults(quotas)
    append(bench, make_batch)
    bench.client.config_resetstat()
    assert commands(300) == 300


def test_no_more_topics_than_the_quota(bench):
    topics = bench.hot.topics()
    topics.set_defaults({QUOTA_TOPICS: 2})
    topics.create("second")
    with pytest.raises(QuotaExceededError, match=r"2 topics, and lakelog\.quota\.") as refused:
        topics.create("third")
    assert refused.value.quota == QUOTA_TOPICS
    topics.add_partitions("second", 3)  # what is there can be changed
    topics.create("second", if_not_exists=True)
    topics.delete("second")
    topics.create("third")
    with pytest.raises(QuotaExceededError):
        topics.undelete(topics.deleted("second")[0], {})


def test_a_producer_waits_for_the_rate_within_its_delivery_timeout(redis_url):
    from lakelog import Lakelog

    with Lakelog.connect(redis_url) as lake:
        lake.topics.create("orders", 2)
        lake.topics.set_defaults({QUOTA_BYTE_RATE: 100_000})
        with lake.producer(batch_size=131_072) as producer:  # the second batch pays for the first
            sent = [producer.send("orders", b"x" * 10_000) for _ in range(15)]
        assert sorted({record.result().partition for record in sent}) in ([0], [1], [0, 1])
        with lake.producer(delivery_timeout_ms=2_000) as producer:
            producer.send("orders", b"x" * 900_000).result()  # what exceeds a second's is owed
            later = producer.send("orders", b"x")
            with pytest.raises(Exception, match=r"producer\.byte\.rate") as told:
                later.result()
        assert isinstance(told.value.last_error, ThrottlingQuotaExceededError)

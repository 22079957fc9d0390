from __future__ import annotations

import itertools
import random
from datetime import datetime, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog.base.metrics import CONSUMED_RECORDS, COUNTS
from lakelog.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.config import EntryFormat
from lakelog.values.record import RECORDS, OffsetAndTimestamp, to_records
from lakelog.values.topic_partition import TopicPartition

LONG_MS = 60_000  # what a test that passes never waits out


def offsets(polled):
    return {tp.partition: [record.offset for record in records] for tp, records in polled.items()}


def drain(consumer, **options):
    """Everything there is now, by partition."""
    seen = {}
    while polled := consumer.poll(**options):
        for partition, some in offsets(polled).items():
            seen.setdefault(partition, []).extend(some)
    return seen


@pytest.fixture
def tp(bench):
    return bench.topic.partition(0)


@pytest.fixture
def reader(bench, tp):
    """A consumer of the whole log: 0..9, cold [0, 6), hot [4, 10)."""
    bench.append(range(100, 110))
    bench.tier(6, 4)
    consumer = bench.consumer(auto_offset_reset="earliest")
    consumer.assign([tp])
    return consumer


@pytest.fixture
def four(make_bench):
    """Four partitions of 50 records each, half of them tiered."""
    bench = make_bench(partitions=4)
    for partition in range(4):
        bench.append(range(50), partition=partition, entry_format=EntryFormat.ARROW)
        bench.tier(25, 25, partition=partition)
    return bench


# -- records in any way ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_calls_of_any_kind_give_each_record_once(four, seed):
    """One by one, as lists and as Arrow, in turns; the position is always that of the next."""
    chance = random.Random(seed)
    before = counted(four.topic.name)
    consumer = four.consumer(auto_offset_reset="earliest", consumer_timeout_ms=0)
    consumer.assign(four.topic.topic_partitions())
    seen = {tp: [] for tp in four.topic.topic_partitions()}
    while sum(map(len, seen.values())) < 200:
        most = chance.randrange(1, 12)
        match chance.randrange(3):
            case 0:
                for record in itertools.islice(consumer, most):
                    seen[record.topic, record.partition].append(record)
            case 1:
                for tp, records in consumer.poll(max_records=most).items():
                    seen[tp] += records
            case _:
                for tp, batch in consumer.poll_arrow(max_records=most).items():
                    seen[tp] += to_records(tp, batch)
        assert {tp: consumer.position(tp) for tp in seen} == {
            tp: len(records) for tp, records in seen.items()
        }
    assert [*seen.values()] == four.appended
    assert counted(four.topic.name) - before == 200


def counted(topic):
    """The consumed records that this process counts."""
    metrics = {one.metric: dict(one.samples) for one in COUNTS.measured()}
    return metrics[CONSUMED_RECORDS].get((topic,), 0)


# -- positions -----------------------------------------------------------------------------------


def test_latest_is_where_a_consumer_begins_by_default(bench, tp):
    bench.append(range(5))
    consumer = bench.consumer()
    consumer.assign([tp])

    assert consumer.poll() == {}
    assert consumer.position(tp) == 5
    bench.append([5])
    assert offsets(consumer.poll(LONG_MS)) == {0: [5]}


def test_seek_to_either_end_is_looked_up_when_it_is_needed(bench, tp, reader):
    reader.seek_to_end(tp)
    bench.append([1])
    assert reader.position(tp) == 11
    reader.seek_to_beginning()
    bench.log.raise_log_start(0, 3)
    assert offsets(reader.poll(max_records=1)) == {0: [3]}


@pytest.mark.parametrize(
    ("when", "offset"),
    [
        (0, 0),
        (103, 3),
        ("1970-01-01T00:00:00.107Z", 7),
        (datetime(1970, 1, 1, 0, 0, 0, 105_000, timezone.utc), 5),
        (999, 10),
    ],
)
def test_seek_to_timestamp_goes_to_the_first_record_at_or_after_it(tp, reader, when, offset):
    assert reader.seek_to_timestamp(tp, when) == offset
    assert reader.position(tp) == offset


@pytest.mark.parametrize("odd", [-1, 1.5, True, None])
def test_what_is_no_offset_no_time_and_no_number_is_refused(tp, reader, odd):
    calls = [lambda: reader.seek(tp, odd), lambda: reader.poll(odd)]
    if odd is not True:
        calls.append(lambda: reader.seek_to_timestamp(tp, odd))
    if odd is not None:
        calls += [lambda: reader.poll(0, odd), lambda: reader.poll_arrow(0, odd)]
    for call in calls:
        with pytest.raises(InvalidArgumentError):
            call()
    for naive in (datetime(2013, 12, 30), "2013-12-30"):  # noqa: DTZ001
        with pytest.raises(InvalidArgumentError):
            reader.seek_to_timestamp(tp, naive)
    assert reader.position(tp) == 0


def test_partitions_that_are_not_assigned_are_refused(reader):
    other = TopicPartition("other", 0)
    for ask in (
        lambda: reader.seek(other, 1),
        lambda: reader.seek_to_timestamp(other, 1),
        lambda: reader.seek_to_end(other),
        lambda: reader.position(other),
        lambda: reader.pause(other),
    ):
        with pytest.raises(InvalidArgumentError, match="other-0 is not assigned"):
            ask()


def test_a_consumer_without_partitions_has_nothing_to_poll(bench):
    consumer = bench.consumer()
    for ask in (consumer.poll, consumer.poll_arrow, lambda: next(iter(consumer))):
        with pytest.raises(InvalidArgumentError, match=r"assign\(\)"):
            ask()


def test_assigning_anew_keeps_the_positions_of_those_that_stay(four):
    consumer = four.consumer(auto_offset_reset="earliest")
    first, second, third = (four.topic.partition(p) for p in range(3))
    consumer.assign([first, second])
    consumer.seek(second, 7)
    consumer.pause(first)

    consumer.assign([second, (third.topic, 2)])

    assert consumer.assignment() == {second, third}
    assert consumer.paused() == set()
    assert consumer.position(second) == 7
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.assign([first, TopicPartition(four.topic.name, 4)])
    assert consumer.assignment() == {second, third}


# -- auto_offset_reset ---------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 4), ("latest", 10)])
@pytest.mark.parametrize("position", [2, 15])
def test_out_of_range_goes_where_the_policy_says(bench, tp, policy, offset, position):
    bench.append(range(10))
    bench.log.raise_log_start(0, 4)
    consumer = bench.consumer(auto_offset_reset=policy)
    consumer.assign([tp])
    consumer.seek(tp, position)
    assert consumer.position(tp) == position

    seen = drain(consumer)

    assert seen == ({0: list(range(offset, 10))} if offset < 10 else {})
    assert consumer.position(tp) == 10


def test_without_a_policy_out_of_range_is_an_error_and_the_position_stays(bench, tp):
    bench.append(range(10))
    consumer = bench.consumer(auto_offset_reset="none")
    consumer.assign([tp])
    consumer.seek(tp, 15)

    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="or set auto_offset_reset to"):
            consumer.poll()
    assert consumer.position(tp) == 15
    consumer.seek(tp, 9)
    assert offsets(consumer.poll()) == {0: [9]}


def test_without_a_policy_and_a_position_there_is_an_error(bench, tp):
    consumer = bench.consumer(auto_offset_reset="none")
    consumer.assign([tp])

    for ask in (consumer.poll, lambda: consumer.position(tp)):
        with pytest.raises(NoOffsetForPartitionError, match="auto_offset_reset='none'"):
            ask()
    bench.append([1])
    consumer.seek_to_beginning()
    assert offsets(consumer.poll()) == {0: [0]}


def test_by_duration_begins_so_long_before_now(bench, tp):
    now = bench.clock.now_ms()
    bench.append([now - 7_200_000, now - 3_000_000, now])
    bench.tier(2, 1)
    for policy, offset in [("PT1H", 1), ("PT1M", 2), ("P9D", 0)]:
        consumer = bench.consumer(auto_offset_reset=f"by_duration:{policy}")
        consumer.assign([tp])
        assert consumer.position(tp) == offset


# -- polls ---------------------------------------------------------------------------------------


def test_no_partition_starves(four):
    consumer = four.consumer(auto_offset_reset="earliest")
    consumer.assign(four.topic.topic_partitions())

    taken = dict.fromkeys(range(4), 0)
    for _ in range(10):
        polled = offsets(consumer.poll(max_records=6))
        assert sum(map(len, polled.values())) == 6
        for partition, some in polled.items():
            assert some == list(range(taken[partition], taken[partition] + len(some)))
            taken[partition] += len(some)
        assert max(taken.values()) - min(taken.values()) <= 6
    assert drain(consumer)[3][-1] == 49


def test_arrow_polls_give_one_batch_a_partition(four):
    consumer = four.consumer(auto_offset_reset="earliest")
    consumer.assign(four.topic.topic_partitions()[:2])

    seen = {0: [], 1: []}
    for max_records in (90, None):
        polled = consumer.poll_arrow(max_records=max_records)
        assert max_records is None or sum(batch.num_rows for batch in polled.values()) == 90
        for tp, batch in polled.items():
            assert batch.schema == RECORDS
            seen[tp.partition] += batch.column("offset").to_pylist()

    assert seen == {0: list(range(50)), 1: list(range(50))}
    assert consumer.poll_arrow() == {}


def test_paused_partitions_wait_and_lose_nothing(four):
    consumer = four.consumer(auto_offset_reset="earliest")
    first, second = four.topic.topic_partitions()[:2]
    consumer.assign([first, second])
    consumer.poll(max_records=4)
    consumer.pause(first)
    assert consumer.paused() == {first}

    assert drain(consumer) == {1: list(range(2, 50))}
    consumer.pause()
    assert consumer.poll(1) == {}
    consumer.resume()
    assert consumer.paused() == set()
    assert drain(consumer) == {0: list(range(2, 50))}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("poll"), st.integers(1, 9)),
        st.tuples(st.just("iterate"), st.integers(1, 5)),
        st.tuples(st.just("append"), st.integers(1, 9)),
        st.tuples(st.just("tier"), st.integers(0, 8)),
        st.tuples(st.just("delete"), st.integers(0, 8)),
        st.tuples(st.just("seek"), st.integers(0, 8)),
    ),
    max_size=15,
)


@given(steps=steps)
@example(steps=[("append", 2), ("poll", 1), ("append", 1)])
@settings(max_examples=12)
def test_a_consumer_gives_every_record_of_the_log_once_and_in_order(make_bench, steps):
    bench = make_bench(partitions=2)
    followed = bench.topic.partition(1)
    consumer = bench.consumer(auto_offset_reset="earliest", consumer_timeout_ms=0)
    consumer.assign(bench.topic.topic_partitions())
    consumer.seek(followed, 0)
    position = 0

    # The first of the last two may give what was read before the last append, and no more.
    for step, number in [*steps, ("poll", 10_000), ("poll", 10_000)]:
        offsets = bench.log.offsets()[1]
        span = offsets.log_end - offsets.log_start
        seen = []
        if step == "poll":
            seen = consumer.poll(max_records=number).get(followed, [])
        elif step == "iterate":
            seen = list(itertools.islice(consumer, number))
        elif step == "append":
            bench.append(range(number), partition=1)
        elif step == "tier":
            unarchived = offsets.log_end - offsets.archived_end
            bench.archive(offsets.archived_end + unarchived * number // 8, partition=1)
            bench.trim(offsets.archived_end, partition=1)
        elif step == "delete":
            bench.log.raise_log_start(1, offsets.log_start + span * number // 8)
        else:
            position = offsets.log_start + span * number // 8
            consumer.seek(followed, position)
        for record in seen:
            if record.offset != position:
                # What had been read ahead may be given; what had not is gone.
                assert position < record.offset == offsets.log_start
            assert record == bench.appended[1][record.offset]
            position = record.offset + 1
    end = bench.log.offsets()[1]
    assert consumer.position(followed) == max(position, end.log_start) == end.log_end


def test_an_error_of_one_partition_leaves_the_rest_and_all_positions(four, redis_client):
    consumer = four.consumer(auto_offset_reset="earliest", max_poll_records=10)
    bad, good = four.topic.topic_partitions()[:2]
    consumer.assign([bad, good])
    consumer.seek(bad, 25)
    stream = f"lakelog:stream:{four.topic.name}:0"
    redis_client.xdel(stream, redis_client.xrange(stream)[0][0])

    assert offsets(consumer.poll()) == {1: list(range(10))}
    with pytest.raises(CorruptRecordError):
        consumer.poll()
    assert (consumer.position(bad), consumer.position(good)) == (25, 10)
    assert offsets(consumer.poll()) == {1: list(range(10, 20))}
    consumer.pause(bad)
    assert drain(consumer) == {1: list(range(20, 50))}
    consumer.resume(bad)
    with pytest.raises(CorruptRecordError):
        consumer.poll()


# -- iteration -----------------------------------------------------------------------------------


def test_the_position_follows_each_record_of_an_iteration(bench, tp, reader):
    steps = iter(reader)

    assert [next(steps).offset for _ in range(5)] == [0, 1, 2, 3, 4]
    assert reader.position(tp) == 5
    assert offsets(reader.poll(max_records=3))[0][0] == 5
    reader.seek(tp, 9)
    assert next(steps).offset == 9


def test_pausing_within_an_iteration_takes_effect_at_once(four):
    consumer = four.consumer(auto_offset_reset="earliest", consumer_timeout_ms=1)
    consumer.assign(four.topic.topic_partitions()[:2])

    seen = []
    for record in consumer:
        seen.append((record.partition, record.offset))
        if record.offset == 9:
            consumer.pause(TopicPartition(record.topic, record.partition))

    assert seen == [(p, offset) for p in range(2) for offset in range(10)]


def test_closing_within_an_iteration_ends_it(reader):
    seen = []
    for record in reader:
        seen.append(record.offset)
        reader.close()

    assert seen == [0]


# -- where partitions begin and end --------------------------------------------------------------


def test_offsets_of_partitions_that_need_not_be_assigned(four):
    consumer = four.consumer()
    four.log.raise_log_start(2, 9)
    asked = [four.topic.partition(2), four.topic.partition(0)]

    assert consumer.beginning_offsets(asked) == dict(zip(asked, (9, 0), strict=True))
    assert consumer.end_offsets(asked) == dict.fromkeys(asked, 50)
    assert consumer.beginning_offsets([]) == consumer.end_offsets([]) == {}


def test_offsets_for_times(bench, tp, reader):
    assert reader.offsets_for_times({tp: 107}) == {tp: OffsetAndTimestamp(7, 107)}
    assert reader.offsets_for_times({tp: "1970-01-01T00:00:00.102Z"}) == {
        tp: OffsetAndTimestamp(2, 102)
    }
    assert reader.offsets_for_times({tp: 9_999_999_999_999}) == {tp: None}
    assert reader.offsets_for_times({}) == {}
    with pytest.raises(InvalidArgumentError, match="negative"):
        reader.offsets_for_times({tp: -1})
    with pytest.raises(UnknownTopicOrPartitionError):
        reader.offsets_for_times({TopicPartition(tp.topic, 100): 0})


# -- how often Redis is asked -------------------------------------------------------------------


def test_a_consumer_that_keeps_up_waits_and_reads_once_a_record(make_bench, redis_client):
    """It does not look for more before it waits."""
    bench = make_bench(partitions=3)
    tp = bench.topic.partition(1)
    consumer = bench.consumer(auto_offset_reset="latest")
    consumer.assign(bench.topic.topic_partitions())
    assert consumer.poll(0) == {}
    asked = {"xread": 0, "xrange": 0, "evalsha_ro": 0}
    for number in range(5):
        bench.append([100], partition=1)
        redis_client.config_resetstat()
        assert offsets(consumer.poll(LONG_MS)) == {1: [number]}
        stats = redis_client.info("commandstats")
        for name in asked:
            asked[name] += stats.get(f"cmdstat_{name}", {"calls": 0})["calls"]
    assert asked == {"xread": 5, "xrange": 5, "evalsha_ro": 0}
    assert consumer.position(tp) == 5


def test_what_follows_the_first_that_arrives_comes_in_the_same_poll(make_bench):
    bench = make_bench(partitions=2)
    consumer = bench.consumer(auto_offset_reset="latest")
    consumer.assign(bench.topic.topic_partitions())
    assert consumer.poll(0) == {}
    for _ in range(3):
        bench.append([100, 101])
        bench.append([100], partition=1)
    assert offsets(consumer.poll(LONG_MS)) == {0: [0, 1, 2, 3, 4, 5], 1: [0, 1, 2]}


def test_what_arrived_before_a_seek_is_not_handed_out(make_bench):
    bench = make_bench(partitions=2)
    bench.append([100])
    bench.append([100], partition=1)
    tps = bench.topic.topic_partitions()
    consumer = bench.consumer(auto_offset_reset="latest")
    consumer.assign(tps)
    assert consumer.poll(0) == {}
    for number in (0, 1):
        bench.append([100], partition=number)
    (first,) = offsets(consumer.poll(LONG_MS, max_records=1))  # the other's is at hand
    other = 1 - first
    consumer.seek(tps[other], 0)
    assert offsets(consumer.poll(LONG_MS)) == {other: [0, 1]}

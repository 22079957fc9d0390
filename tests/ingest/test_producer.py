"""`Producer.send`: records arrive once, in order and byte for byte; mistakes get clear errors."""

import os
import subprocess
import sys
import threading
import warnings
from datetime import datetime, timezone
from itertools import pairwise

import pytest

from lakelog import Lakelog
from lakelog.base.clock import ManualClock
from lakelog.codec import fields_entry
from lakelog.errors import (
    BufferExhaustedError,
    DeliveryError,
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    ProducerClosedError,
    RecordTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.ingest.partitioner import partition_of_key
from lakelog.ingest.producer import Producer, ProducerConfig
from lakelog.values.record import Record, RecordMetadata
from lakelog.values.topic_partition import TopicPartition

FOREVER_MS = 3_600_000


def test_a_record_arrives_with_all_it_has(tier, make_producer):
    tier.topics.create("t")
    headers = [("a", b"1"), ("a", b"2"), ("n", None), ("", b"")]
    result = make_producer(tier).send("t", "value", key="key", headers=headers, timestamp_ms=5)
    assert result.result() == RecordMetadata("t", 0, 0, 5)
    assert result.done()
    assert result.exception() is None
    assert tier.records("t") == [Record("t", 0, 0, 5, b"key", b"value", tuple(headers))]


def test_null_is_not_empty(tier, make_producer):
    tier.topics.create("t")
    with make_producer(tier) as producer:
        producer.send("t", None, key=b"")
        producer.send("t", b"", key=None)
    assert [(r.key, r.value) for r in tier.records("t")] == [(b"", None), (None, b"")]


def test_without_a_timestamp_it_is_now(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier, clock=ManualClock(1_000_000))
    assert producer.send("t", b"a").result().timestamp_ms == 1_000_000
    moment = datetime(2020, 1, 1, tzinfo=timezone.utc)
    assert producer.send("t", b"a", timestamp_ms=moment).result().timestamp_ms == (
        moment.timestamp() * 1000
    )


def test_under_log_append_time_the_metadata_has_redis_time(tier, make_producer):
    tier.topics.create("t", config={"message.timestamp.type": "LogAppendTime"})
    metadata = make_producer(tier).send("t", b"a", timestamp_ms=5).result()
    assert [metadata.timestamp_ms] == [r.timestamp_ms for r in tier.records("t")] != [5]


def test_records_of_a_partition_keep_their_order(tier, make_producer):
    tier.topics.create("t", 3)
    with make_producer(tier, batch_size=500) as producer:
        results = [producer.send("t", b"%d" % n, partition=n % 3) for n in range(3000)]
    for partition in range(3):
        assert tier.values("t", partition) == [b"%d" % n for n in range(partition, 3000, 3)]
    assert [r.result().offset for r in results] == [n // 3 for n in range(3000)]


def test_a_key_decides_the_partition(tier, make_producer):
    tier.topics.create("t", 5)
    with make_producer(tier) as producer:
        found = {n: producer.send("t", b"", key=b"%d" % n) for n in range(50)}
    assert {n: result.result().partition for n, result in found.items()} == {
        n: partition_of_key(b"%d" % n, 5) for n in range(50)
    }


def test_records_without_a_key_fill_one_partition_after_another(tier, make_producer):
    tier.topics.create("t", 4)
    with make_producer(tier, batch_size=1000) as producer:
        results = [producer.send("t", b"x" * 100) for _ in range(400)]
    partitions = [result.result().partition for result in results]
    changes = sum(a != b for a, b in pairwise(partitions))
    assert set(partitions) == {0, 1, 2, 3}
    assert changes < 60


def test_asking_for_a_result_ends_the_lingering(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier, linger_ms=FOREVER_MS, delivery_timeout_ms=FOREVER_MS)
    result = producer.send("t", b"a")
    with pytest.raises(TimeoutError, match="still being delivered"):
        result.result(timeout=0)
    assert result.result().offset == 0


def test_flush_ends_the_lingering_and_a_full_batch_does(tier, make_producer):
    tier.topics.create("t", 2)
    producer = make_producer(
        tier, linger_ms=FOREVER_MS, delivery_timeout_ms=FOREVER_MS, batch_size=300
    )
    is_done = threading.Event()
    full = producer.send("t", b"a" * 300, partition=0)
    full.add_done_callback(lambda _: is_done.set())
    lingering = producer.send("t", b"a", partition=1)
    assert is_done.wait(60)
    assert not lingering.done()
    producer.flush()
    assert lingering.done()


def test_callbacks_get_the_result_also_when_it_is_there_already(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier)
    heard = []

    def fail(result):
        raise RuntimeError("the callback's own fault")

    result = producer.send("t", b"a")
    result.add_done_callback(fail)
    result.add_done_callback(heard.append)
    producer.close()
    result.add_done_callback(heard.append)
    assert heard == [result, result]


def test_a_callback_that_waits_for_records_is_told_that_it_cannot(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier, linger_ms=FOREVER_MS, delivery_timeout_ms=FOREVER_MS)
    heard = []

    def wait(_):
        try:
            producer.flush()
        except LakelogError as error:
            heard.append("another thread" in str(error))

    producer.send("t", b"a").add_done_callback(wait)
    producer.close()
    assert heard == [True]


def test_many_threads_may_send(tier, make_producer):
    tier.topics.create("t", 2)
    producer = make_producer(tier, batch_size=2000, buffer_memory=20_000)
    errors = []

    def send(thread):
        try:
            for n in range(500):
                producer.send("t", b"%d %d" % (thread, n), partition=n % 2)
                if n % 100 == 0:
                    producer.flush()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    assert errors == []
    for partition in (0, 1):
        found = [tuple(map(int, value.split())) for value in tier.values("t", partition)]
        for thread in range(6):
            assert [n for t, n in found if t == thread] == list(range(partition, 500, 2))


# -- topics ------------------------------------------------------------------------------------


def test_an_unknown_topic_or_partition_is_refused_at_once(tier, make_producer):
    producer = make_producer(tier)
    with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
        producer.send("nowhere", b"a")
    tier.topics.create("t", 2)
    with pytest.raises(UnknownTopicOrPartitionError, match=r"has partitions\s+0\.\.1"):
        producer.send("t", b"a", partition=2)
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send("t", b"a", partition=-1)
    producer.flush()


def test_a_partition_added_later_is_found(tier, make_producer):
    tier.topics.create("t", 1)
    producer = make_producer(tier)
    producer.send("t", b"a").result()
    tier.topics.add_partitions("t", 2)
    assert producer.send("t", b"b", partition=1).result().partition == 1
    assert producer.send("t", b"c", partition=0).result().offset == 1


def test_settings_that_changed_are_noticed_after_the_metadata_age(tier, make_producer):
    tier.topics.create("t", 1, {"lakelog.entry.format": "arrow"})
    producer = make_producer(tier, metadata_max_age_ms=1)
    producer.send("t", b"a").result()
    tier.topics.alter("t", {"max.message.bytes": 2000})
    producer.flush()
    threading.Event().wait(0.005)  # older than the age, whatever the machine does
    producer.send("t", b"a").result()
    with pytest.raises(RecordTooLargeError):
        producer.send("t", os.urandom(3000)).result()


@pytest.mark.parametrize("value", [b'{"a":1,5:2}', b'{"a":1,', b'{"a":1,null:2}'])
def test_a_value_that_cannot_be_flattened_is_stored_as_it_is(tier, make_producer, value):
    config = {"lakelog.entry.format": "fields", "lakelog.fields.flatten": "true"}
    tier.topics.create("t", 1, config)
    producer = make_producer(tier, linger_ms=1000)
    results = [producer.send("t", each) for each in (b'{"a":1}', value, b'{"b":2}')]
    producer.flush()
    assert [result.result().offset for result in results] == [0, 1, 2]
    assert tier.values("t") == [b'{"a":1}', value, b'{"b":2}']


def test_a_record_that_cannot_be_encoded_fails_alone(tier, make_producer, monkeypatch):
    split = fields_entry.split_object

    def split_or_fail(value):
        if value == b'{"a":2}':
            raise TypeError("a defect")
        return split(value)

    monkeypatch.setattr(fields_entry, "split_object", split_or_fail)
    config = {"lakelog.entry.format": "fields", "lakelog.fields.flatten": "true"}
    tier.topics.create("t", 1, config)
    producer = make_producer(tier, linger_ms=1000)
    first, odd, last = [producer.send("t", b'{"a":%d}' % number) for number in (1, 2, 3)]
    assert (first.result().offset, last.result().offset) == (0, 1)
    with pytest.raises(InvalidRecordError, match="cannot be encoded: TypeError"):
        odd.result()
    with pytest.raises(InvalidRecordError, match="row 2 of the batch") as raised:
        producer.send_batch("t", [b"x", b"y", b'{"a":2}'])
    assert (raised.value.index, raised.value.batch.not_written) == (2, 3)
    assert tier.values("t") == [b'{"a":1}', b'{"a":3}']


def test_a_limit_that_somebody_raised_counts_at_once_for_a_batch(tier, make_producer):
    tier.topics.create("t", 2, {"max.message.bytes": 2000, "lakelog.max.decoded.bytes": 2500})
    producer = make_producer(tier)
    producer.send("t", b"a", partition=0).result()
    tier.topics.alter("t", {"max.message.bytes": 4000, "lakelog.max.decoded.bytes": 9000})
    for partition in (0, 1):  # each has its own copy of the settings
        rows = [b"b", os.urandom(3000), os.urandom(3000)]
        assert len(producer.send_batch("t", rows, partition=partition)) == 3
    with pytest.raises(RecordTooLargeError) as refused:
        producer.send_batch("t", [b"c", os.urandom(5000)], partition=0)
    assert refused.value.index == 1


def test_a_limit_that_somebody_lowered_counts_at_once_and_for_what_follows(tier, make_producer):
    tier.topics.create("t", 1, {"max.message.bytes": 40_000})
    producer = make_producer(tier, compression_type="none")
    producer.send("t", b"a").result()
    tier.topics.alter("t", {"max.message.bytes": 2000})
    with pytest.raises(RecordTooLargeError):
        producer.send("t", b"b" * 3000).result()
    results = [producer.send("t", b"c" * 500) for _ in range(20)]  # cut into entries that fit
    assert [result.result().offset for result in results] == list(range(1, 21))


def test_records_for_a_topic_that_was_dropped_fail_and_later_ones_find_the_new_topic(
    tier, make_producer
):
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"old").result()
    tier.topics.delete("t")
    tier.topics.create("t")
    with pytest.raises(UnknownTopicIdError):
        producer.send("t", b"lost").result()
    assert producer.send("t", b"new").result().offset == 0
    assert tier.values("t") == [b"new"]


# -- what the log refuses ----------------------------------------------------------------------


def test_only_the_records_of_the_refused_call_fail(tier, make_producer):
    tier.topics.create("t", config={"message.timestamp.after.max.ms": 1000})
    producer = make_producer(
        tier, batch_size=100, linger_ms=FOREVER_MS, delivery_timeout_ms=FOREVER_MS
    )
    results = [
        producer.send("t", b"%d" % n, timestamp_ms=2**45 if n == 42 else 0) for n in range(100)
    ]
    producer_error = results[42].exception()
    assert isinstance(producer_error, InvalidTimestampError)
    assert [timestamp for _, timestamp, _ in producer_error.record_errors] == [2**45]
    failed = [n for n, result in enumerate(results) if result.exception() is not None]
    assert {id(results[n].exception()) for n in failed} == {id(producer_error)}
    assert len(failed) < 10
    kept = [n for n in range(100) if n not in failed]
    assert tier.values("t") == [b"%d" % n for n in kept]
    assert [results[n].result().offset for n in kept] == list(range(len(kept)))
    assert producer.send("t", b"on").result().offset == len(kept)


def test_a_record_that_is_too_large_fails_alone(tier, make_producer):
    tier.topics.create("t", config={"max.message.bytes": 4000})
    producer = make_producer(tier, compression_type="none")
    values = [b"a", b"b" * 5000, b"c", b"d" * 6000, b"e"]
    results = [producer.send("t", value) for value in values]
    producer.send("t", b"f").result()
    assert [type(result.exception()) for result in results] == [
        type(None),
        RecordTooLargeError,
        type(None),
        RecordTooLargeError,
        type(None),
    ]
    assert [results[n].result().offset for n in (0, 2, 4)] == [0, 1, 2]
    assert tier.values("t") == [b"a", b"c", b"e", b"f"]


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(tier, make_producer):
    tier.topics.create("t", config={"cleanup.policy": "compact"})
    producer = make_producer(tier)
    with pytest.raises(InvalidRecordError, match="no key"):
        producer.send("t", b"a").result()
    assert producer.send("t", b"a", key=b"k").result().offset == 0


def test_a_value_that_is_no_bytes_is_refused_with_the_way_to_encode_it(tier, make_producer):
    tier.topics.create("t")
    with pytest.raises(InvalidArgumentError, match=r"json\.dumps"):
        make_producer(tier).send("t", {"a": 1})


def test_acks_fsync_is_refused_by_a_server_that_does_not_sync(tier, make_producer):
    tier.topics.create("t")
    with pytest.raises(InvalidArgumentError, match="appendfsync always"):
        make_producer(tier, acks="fsync").send("t", b"a").result()


# -- the end -----------------------------------------------------------------------------------


def test_a_closed_producer_takes_nothing_and_closes_again(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier)
    result = producer.send("t", b"a")
    producer.close()
    producer.close()
    assert result.done()
    with pytest.raises(ProducerClosedError, match="closed"):
        producer.send("t", b"b")
    with pytest.raises(ProducerClosedError, match="closed"):
        producer.send_batch("t", [b"b"])
    assert tier.values("t") == [b"a"]


def test_flush_tells_of_failures_that_nobody_asked_about(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"a", timestamp_ms=2**45)
    with pytest.raises(DeliveryError, match="1 are surely not in the log") as raised:
        producer.flush()
    assert (raised.value.not_written, raised.value.unknown) == (1, 0)
    assert isinstance(raised.value.__cause__, InvalidTimestampError)
    producer.flush()


def test_flush_says_nothing_of_failures_that_were_seen(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier)
    assert producer.send("t", b"a", timestamp_ms=2**45).exception() is not None
    producer.flush()


def test_leaving_the_context_by_an_error_hides_nothing(tier, make_producer):
    tier.topics.create("t")

    def produce():
        with make_producer(tier) as producer:
            producer.send("t", b"a", timestamp_ms=2**45)
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        produce()


def test_a_forgotten_producer_warns_of_what_it_had_not_sent(tier):
    tier.topics.create("t")
    config = ProducerConfig(linger_ms=FOREVER_MS, delivery_timeout_ms=FOREVER_MS)
    producer = Producer(tier.hot, tier.topics, tier.hot.recover, config)
    result = producer.send("t", b"a")
    with pytest.warns(ResourceWarning, match="1 record under way"):
        del producer
    assert result.result().offset == 0  # its thread sends what there is


_LEFT_OPEN = """
import sys, threading
from lakelog import Lakelog

producer = Lakelog.connect(sys.argv[1], sys.argv[2], engine="inline").producer()
# For the producer's own thread, which the end of a process may catch with the lock in hand.
holder = threading.Thread(target=producer._accumulator.lock.acquire)
holder.start()
holder.join()
"""


def test_a_process_ends_though_its_producer_was_left_open(redis_url, tmp_path):
    command = [sys.executable, "-c", _LEFT_OPEN, redis_url, str(tmp_path)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0  # it did not hang


_FORGOT_TO_CLOSE = """
import sys
from lakelog import Lakelog

log = Lakelog.embedded(sys.argv[1], engine="inline")
log.topics.create("t")
producer = log.producer(linger_ms=60_000)
for number in range(3):
    producer.send("t", str(number))
"""


def test_a_script_that_forgets_to_close_loses_nothing(tmp_path):
    command = [sys.executable, "-c", _FORGOT_TO_CLOSE, str(tmp_path)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    with Lakelog.embedded(tmp_path, engine="inline") as log:
        values = [record.value for record in log.log("t").read(0).records()]
    assert values == [b"0", b"1", b"2"]


_LOST_ITS_REDIS = """
import os, signal, sys
from lakelog import Lakelog
from lakelog.errors import HotTierUnavailableError
from lakelog.hot.connection import connect
from lakelog.ingest import open_producers as module

module.EXIT_TIMEOUT_MS = 100
log = Lakelog.connect(sys.argv[1], sys.argv[2], engine="inline")
log.topics.create("t")
producer = log.producer(linger_ms=60_000)
producer.send("t", "value")
os.kill(int(sys.argv[3]), signal.SIGKILL)
server = connect(sys.argv[1]).for_key("any")
try:
    while True:  # what is sent before it is gone may be in the log
        server.call(("PING",))
except HotTierUnavailableError:
    pass
"""


def test_a_script_that_could_not_send_says_so_as_it_ends(make_redis, tmp_path):
    server = make_redis()
    command = [sys.executable, "-c", _LOST_ITS_REDIS, server.url, str(tmp_path), str(server.pid)]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert "a producer was left open, and the process ends" in done.stderr
    assert "1 record is surely not in the log" in done.stderr


def test_a_forked_child_is_told_to_make_its_own_producer(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier, linger_ms=FOREVER_MS, delivery_timeout_ms=FOREVER_MS)
    pending = producer.send("t", b"parent")
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads, on purpose
        child = os.fork()
    if child == 0:
        said = []
        for ask in (
            lambda: producer.send("t", b"child"),
            lambda: producer.send_batch("t", [b"child"]),
            producer.flush,
            pending.result,
        ):
            try:
                ask()
            except ProducerClosedError as error:
                said.append("parent process" in str(error))
            except BaseException:
                said.append(False)
        producer.close()
        os.write(write_end, bytes(said))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read_end, 10) == b"\1\1\1\1"
    os.close(read_end)
    os.close(write_end)
    assert pending.result().offset == 0
    assert tier.values("t") == [b"parent"]


def test_a_buffer_that_stays_full_is_a_clear_error(tier, make_producer):
    tier.topics.create("t")
    producer = make_producer(tier, buffer_memory=1000, max_block_ms=10)
    producer.send("t", b"a").result()
    tier.hot.pause([TopicPartition("t", 0)])
    waiting = [producer.send("t", b"x" * 400) for _ in range(2)]
    with pytest.raises(BufferExhaustedError, match=r"within max_block_ms=10.*paused") as raised:
        producer.send("t", b"x" * 400)
    assert raised.value.retriable
    tier.hot.resume([TopicPartition("t", 0)])
    assert [result.result().offset for result in waiting] == [1, 2]


def test_a_record_larger_than_the_buffer_goes_alone(tier, make_producer):
    tier.topics.create("t")
    with make_producer(tier, buffer_memory=1000) as producer:
        results = [producer.send("t", b"x" * 5000) for _ in range(3)]
    assert [result.result().offset for result in results] == [0, 1, 2]

"""What follows is read ahead of a consumer, up to a limit; what is not wanted is dropped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakelog.errors import CorruptRecordError, InvalidConfigError
from lakelog.testing.eventually import eventually
from lakelog.values.config import KIB

LIMIT_BYTES = 8 * KIB
RECORDS = 60
VALUE_BYTES = 400


class Watched:
    """A log that counts the steps it gives, and gives none ahead while it is held."""

    def __init__(self, log):
        self._log = log
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Event()
        self.held = set()  # partitions
        self.steps = []  # partition, first offset, bytes, thread
        self.fails_at = None

    def __getattr__(self, name):
        return getattr(self._log, name)

    def fetches(self, partition, offset, **options):
        steps = self._log.fetches(partition, offset, **options)
        while True:
            self.asked.set()
            if threading.current_thread() in reading():
                self.held.add(partition)
                self.open.wait()
                self.held.discard(partition)
            if (step := next(steps, None)) is None:
                return
            if self.fails_at is not None and step.next_offset > self.fails_at:
                raise CorruptRecordError("a damaged page", topic_partition=None, offset=offset)
            who = threading.current_thread().name
            self.steps.append((partition, step.start_offset, step.records.nbytes, who))
            yield step


def reading():
    return [one for one in threading.enumerate() if one.name == "lakelog-read-ahead"]


def is_quiet():
    return not reading()


def offsets(records):
    return [record.offset for record in records]


@pytest.fixture
def archived(make_bench):
    """Two partitions in the table alone, and a few records of the first in Redis."""
    bench = make_bench(partitions=2)
    for partition in range(2):
        for _ in range(RECORDS):
            bench.append([1], partition=partition, value_bytes=VALUE_BYTES)
        bench.tier(RECORDS, RECORDS, partition=partition)
    for _ in range(5):
        bench.append([1])
    bench.log = Watched(bench.log)
    return bench


@pytest.fixture
def start(archived):
    """Makes a consumer of some partitions, which has read one record."""
    made = []

    def start(*partitions, **config):
        config = {"fetch_max_bytes": LIMIT_BYTES, **config}
        consumer = archived.consumer(auto_offset_reset="earliest", **config)
        made.append(consumer)
        consumer.assign([archived.topic.partition(number) for number in partitions])
        assert consumer.poll(max_records=1)
        return consumer

    yield start
    archived.log.open.set()
    for consumer in made:
        consumer.close()


def everything(consumer):
    found = {}
    while polled := consumer.poll():
        for tp, records in polled.items():
            found.setdefault(tp.partition, []).extend(offsets(records))
    return found


def test_the_next_steps_are_read_while_the_first_is_handed_out(archived, start):
    consumer = start(0)
    eventually(is_quiet)

    ahead = [who for *_, who in archived.log.steps[1:]]
    assert ahead
    assert set(ahead) == {"lakelog-read-ahead"}
    assert everything(consumer) == {0: list(range(1, RECORDS + 5))}


def test_what_waits_stays_within_the_limit(archived, start):
    consumer = start(0, 1)
    most = 0
    while any(consumer.poll(max_records=1).values()):
        eventually(is_quiet)
        most = max(most, consumer._reading.read_ahead.waiting_bytes)
    assert LIMIT_BYTES / 2 < most <= LIMIT_BYTES
    assert max(size for *_, size, _ in archived.log.steps) <= LIMIT_BYTES / 2


def test_what_is_hot_is_read_ahead_from_the_second_step_on(make_bench):
    """The first may have been sought for a single record."""
    bench = make_bench(partitions=1)
    for _ in range(RECORDS):
        bench.append([1], value_bytes=VALUE_BYTES)
    bench.log = Watched(bench.log)
    with bench.consumer(auto_offset_reset="earliest", fetch_max_bytes=LIMIT_BYTES) as consumer:
        consumer.assign([bench.topic.partition(0)])
        assert consumer.poll(max_records=1)
        eventually(is_quiet)
        assert len(bench.log.steps) == 1

        assert everything(consumer) == {0: list(range(1, RECORDS))}
    assert {who for *_, who in bench.log.steps[2:]} == {"lakelog-read-ahead"}
    assert max(size for *_, size, _ in bench.log.steps) <= LIMIT_BYTES / 2


def test_without_room_there_is_no_thread(archived, start):
    consumer = start(0, fetch_max_bytes=0)
    assert everything(consumer) == {0: list(range(1, RECORDS + 5))}
    assert {who for *_, who in archived.log.steps} == {threading.current_thread().name}


def test_an_error_comes_with_the_poll_that_needs_the_file(archived, start):
    archived.log.fails_at = 20
    consumer = start(0)
    tp = archived.topic.partition(0)
    eventually(is_quiet)
    seen = []

    def read_on():
        while True:
            seen.extend(offsets(consumer.poll(max_records=2)[tp]))

    with pytest.raises(CorruptRecordError):
        read_on()
    assert seen == list(range(1, seen[-1] + 1))
    assert seen[-1] > 1
    assert consumer.position(tp) == seen[-1] + 1

    archived.log.fails_at = None
    assert everything(consumer) == {0: list(range(seen[-1] + 1, RECORDS + 5))}


def held(archived, start, *partitions):
    """A consumer while a read ahead of it is under way."""
    archived.log.asked.clear()
    consumer = start(*partitions)  # the first step is read here, the next one ahead
    eventually(is_quiet)
    archived.log.open.clear()
    archived.log.asked.clear()
    tp = archived.topic.partition(partitions[0])
    while not reading():
        consumer.poll(max_records=1)
    assert archived.log.asked.wait(60)
    return consumer, tp


def test_a_seek_drops_what_is_being_read(archived, start):
    consumer, tp = held(archived, start, 0)
    consumer.seek(tp, 50)
    assert consumer._reading.read_ahead.waiting_bytes == 0
    archived.log.open.set()
    assert everything(consumer) == {0: list(range(50, RECORDS + 5))}


def test_close_waits_for_what_is_being_read_and_leaves_no_thread(archived, start):
    consumer, _ = held(archived, start, 0)
    closing = threading.Thread(target=consumer.close)
    closing.start()
    eventually(lambda: not consumer.assignment())
    archived.log.open.set()
    closing.join(60)
    assert not closing.is_alive()
    assert is_quiet()
    assert consumer._reading.read_ahead.waiting_bytes == 0


def test_nothing_is_read_ahead_of_a_paused_partition(archived, start):
    consumer, tp = held(archived, start, 0)
    consumer.pause(tp)
    archived.log.open.set()
    eventually(is_quiet)
    read = len(archived.log.steps)
    assert consumer.poll() == {}
    assert len(archived.log.steps) == read

    consumer.resume(tp)
    position = consumer.position(tp)
    assert everything(consumer) == {0: list(range(position, RECORDS + 5))}


@pytest.mark.parametrize("value", [-1, 1.5, True, None, "8"])
def test_a_limit_that_is_no_size_is_refused(archived, value):
    with pytest.raises(InvalidConfigError, match="fetch_max_bytes"):
        archived.consumer(fetch_max_bytes=value)


SCRIPT = """
import os, sys
from lakelog import Lakelog
from lakelog.read import fetch

how, url, cold = sys.argv[1:]
lake = Lakelog.connect(url, cold, engine="inline")
lake.topics.create("orders", 1, {"local.retention.ms": 0, "retention.ms": -1})
with lake.producer() as producer:
    for _ in range(2000):
        producer.send("orders", bytes(1000))
assert lake.archive("orders")[0].records == 2000
consumer = lake.consumer(auto_offset_reset="earliest", fetch_max_bytes=64 * 1024)
consumer.assign([("orders", 0)])
seen = sum(map(len, consumer.poll(max_records=100).values()))
if how == "fork":
    child = os.fork()
    if child == 0:
        try:
            while seen < 2000:
                seen += sum(map(len, consumer.poll().values()))
            consumer.close()
            said = f"read {seen}"
        except Exception as error:
            said = type(error).__name__
        print(said, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    while seen < 2000:
        seen += sum(map(len, consumer.poll().values()))
    consumer.close()
print("seen", seen, flush=True)
"""


def run(how: str, redis_url: str, tmp_path: Path) -> list[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), how, redis_url, str(tmp_path / "cold")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env=dict(os.environ)
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_a_process_ends_in_the_middle_of_what_it_reads_ahead(redis_url, tmp_path):
    assert run("exit", redis_url, tmp_path) == ["seen 62"]  # 64 KiB of them


def test_a_fork_does_not_wait_for_a_thread_that_it_has_not(redis_url, tmp_path):
    in_child, in_parent = run("fork", redis_url, tmp_path)
    assert in_child in ("LogClosedError", "read 2000")
    assert in_parent == "seen 2000"

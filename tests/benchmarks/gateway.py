"""A gateway beside a Kafka broker, with the same client: confluent-kafka's, of librdkafka.

The gateway is `lakelog gateway` as users start it, one process, before a Redis that syncs within a
second. Produce: an idempotent producer that waits 5 ms for more, values at random, no compression,
topics of 4 partitions, timed until all is answered. Consume: as many of them from the beginning,
without a group, timed from the first one on. One record: its producer waits for nothing, and the
next is sent once it is answered. Delivery: until a consumer in another thread has it. Idle:
connections that have asked for the versions, as each client does first; the CPU time of the
gateway.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import psutil

from lakelog.base.back_off import POLL, wait_until
from lakelog.gateway.protocol.messages import ApiVersionsRequest
from lakelog.values.config import KIB
from tests.gateway.raw_client import RawClient
from tests.support.servers import free_port

from .append import each_s
from .bench import Bench, Side, rates
from .consume import delivered_s
from .kafka_peer import KafkaPeer
from .made_records import PARTITIONS, size
from .measures import CORES, OURS, RECORDS_PER_S, SECONDS, Goal, Row, quantile

KAFKA = "Kafka"
#: By the bytes of a value: how many records, and the goals of producing and consuming.
SIZES = {100: (300_000, 1.0, 1.0), KIB: (60_000, 0.7, 0.6)}
CALLS = 1_000
CONNECTIONS = 1_000
IDLE_S = 10.0
IDLE_CORES = 0.02
AT_ONCE = 10_000
TIMEOUT_S = 120.0


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis() as server, serving(server.url, str(bench.new_folder())) as (ours, process):
        peers = {OURS: ours} if bench.kafka is None else {OURS: ours, KAFKA: bench.kafka}
        for value_bytes, (records, produce_goal, consume_goal) in SIZES.items():
            count = bench.scaled(records, 100)
            sides = {side: Throughput(peer, value_bytes, count) for side, peer in peers.items()}
            what = f"through a gateway, {size(value_bytes)}"
            calls = {side: one.produce for side, one in sides.items()}
            samples = rates(bench.interleaved(calls), count)
            yield Row(f"produce {what}", RECORDS_PER_S, samples, (Goal(produce_goal, KAFKA),))
            times = in_rounds(bench, {side: one.consumed_s for side, one in sides.items()})
            samples = {side: tuple(count / s for (s,) in rounds) for side, rounds in times.items()}
            yield Row(f"consume {what}", RECORDS_PER_S, samples, (Goal(consume_goal, KAFKA),))
            for one in sides.values():
                one.peer.delete(one.name)
        yield from of_one(bench, peers)
        yield delivery(bench, peers)
        yield idle(bench, ours, process)


@contextmanager
def serving(redis_url: str, cold: str) -> Iterator[tuple[KafkaPeer, psutil.Process]]:
    """A gateway, as a broker."""
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "lakelog", "--redis", redis_url, "--cold", cold]
    process = subprocess.Popen(
        [*command, "gateway", "--listen", address], stdout=subprocess.DEVNULL
    )
    try:
        if not wait_until("the gateway", lambda: _answers(address), POLL.within(TIMEOUT_S)):
            raise RuntimeError(f"the gateway did not answer at {address}")
        yield KafkaPeer(address), psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_S)


def _answers(address: str) -> bool:
    try:
        with RawClient(address) as client:
            client.ask(ApiVersionsRequest(), 0)
    except OSError:
        return False
    return True


class Throughput:
    """Records of one size, of which each round produces or consumes as many."""

    def __init__(self, peer: KafkaPeer, value_bytes: int, count: int) -> None:
        self.peer = peer
        self.name = f"throughput-{value_bytes}"
        self._count = count
        self._value = os.urandom(value_bytes)
        self._starts = dict.fromkeys(range(PARTITIONS), 0)
        peer.make(self.name, PARTITIONS)

    def produce(self) -> None:
        producer = self.peer.producer(
            **{
                "linger.ms": 5,
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 1 << 20,
                "delivery.report.only.error": True,
            }
        )
        topic, value, failed = self.peer.topic(self.name), self._value, list[Any]()

        def told(error: Any, _: Any) -> None:
            failed.append(error)

        for number in range(self._count):
            while True:
                try:
                    producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=told)
                    break
                except BufferError:  # its queue is full
                    producer.poll(0.01)
        if producer.flush(TIMEOUT_S) or failed:
            raise RuntimeError(f"not all of {self._count} records were taken: {failed[:1]}")

    def consumed_s(self) -> list[float]:
        """From the first record on: until then, for up to a second, a client looks around."""
        from confluent_kafka import TopicPartition

        consumer = self.peer.consumer(**{"queued.max.messages.kbytes": 65_536})
        topic = self.peer.topic(self.name)
        consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
        seen, began_s, deadline_s = 0, None, time.monotonic() + TIMEOUT_S
        while seen < self._count:
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"{seen} of {self._count} records came")
            # No more than are left: it would wait for them for all of its second.
            wanted = 1 if began_s is None else min(AT_ONCE, self._count - seen)
            seen += len(consumer.consume(wanted, 1.0))
            if began_s is None and seen:
                began_s = time.perf_counter()
        took_s = time.perf_counter() - (began_s or 0.0)
        consumer.close()
        return [took_s]


def of_one(bench: Bench, peers: Mapping[str, KafkaPeer]) -> Iterator[Row]:
    """A round is many; its figure their median, and their p99."""
    name, calls, value = "one", bench.scaled(CALLS, 20), os.urandom(100)

    def producing(peer: KafkaPeer) -> Callable[[], object]:
        peer.make(name, 1)
        producer, topic = peer.producer(**{"linger.ms": 0}), peer.topic(name)

        def produce() -> None:
            producer.produce(topic, value)
            producer.flush()

        return produce

    sides = {side: producing(peer) for side, peer in peers.items()}
    calling = {side: partial(each_s, calls, call) for side, call in sides.items()}
    times = in_rounds(bench, calling)
    for which, share, goal in (("p50", 0.5, 1 / 1.5), ("p99", 0.99, 1.0)):
        what = f"one record through a gateway, answered, {which}"
        yield Row(what, SECONDS, _quantiles(times, share), (Goal(goal, KAFKA),))


def delivery(bench: Bench, peers: Mapping[str, KafkaPeer]) -> Row:
    name, count = "delivery", bench.scaled(CALLS, 20)
    with ExitStack() as stack:

        def delivering(peer: KafkaPeer) -> Callable[[], list[float]]:
            from confluent_kafka import TopicPartition

            peer.make(name, PARTITIONS)
            producer, topic = peer.producer(**{"linger.ms": 0}), peer.topic(name)
            reader = peer.consumer()
            stack.callback(reader.close)
            reader.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])

            def append(value: bytes) -> None:
                producer.produce(topic, value, partition=0)
                producer.flush()

            def poll() -> list[bytes]:
                return [one.value() for one in reader.consume(1, 1.0)]

            return lambda: delivered_s(count, poll, append)

        times = in_rounds(bench, {side: delivering(peer) for side, peer in peers.items()})
    what = "append → delivered through a gateway, p50"
    return Row(what, SECONDS, _quantiles(times, 0.5), (Goal(1.0, KAFKA),))


def in_rounds(
    bench: Bench, sides: Mapping[str, Callable[[], list[float]]]
) -> dict[str, list[list[float]]]:
    """The seconds that each side measured in each round that counts."""
    found: dict[str, list[list[float]]] = {side: [] for side in sides}

    def kept(side: str, call: Callable[[], list[float]]) -> Side:
        return lambda: found[side].append(call())

    bench.interleaved({side: kept(side, call) for side, call in sides.items()})
    return {side: rounds[1:] for side, rounds in found.items()}


def _quantiles(
    times: Mapping[str, list[list[float]]], share: float
) -> dict[str, tuple[float, ...]]:
    return {side: tuple(quantile(one, share) for one in rounds) for side, rounds in times.items()}


def idle(bench: Bench, ours: KafkaPeer, process: psutil.Process) -> Row:
    count = bench.scaled(CONNECTIONS, 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * count + 1_000)), hard))
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(RawClient(ours.servers))
            client.ask(ApiVersionsRequest(), 0)

        def cores() -> float:
            before = process.cpu_times()
            began_s = time.perf_counter()
            time.sleep(max(1.0, IDLE_S * min(1.0, bench.scale)))
            after = process.cpu_times()
            used_s = after.user + after.system - before.user - before.system
            return max(0.0, used_s) / (time.perf_counter() - began_s)

        samples = bench.interleaved({OURS: cores})
    return Row(f"a gateway with {count:,} idle connections", CORES, samples, (Goal(IDLE_CORES),))

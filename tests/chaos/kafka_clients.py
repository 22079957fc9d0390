"""Gateways, and Kafka's clients on them: what producers and members of the group are there.

They write what `producing` and `grouping` write. As clients are not told the generation, it is the
moment at which a member was given the partition, in tenths of milliseconds.
"""

from __future__ import annotations

import random
import time
from typing import Any

import confluent_kafka as ck

from lakelog.errors import LakelogError

from .grouping import GROUP
from .journal import read_journal
from .payload import PAYLOAD_HEADER, payload_of
from .producing import PAUSE_S, key_of, value_of
from .scenario import TOPICS
from .worker import Process

#: So soon a client asks another gateway what one that stands still may yet do.
REQUEST_MS = 3_000

#: Longer than any outage: only what is lost for good fails.
DELIVERY_MS = 240_000
FLUSH_S = 60.0

#: How long the members may take to come to the end of all topics after all is well.
DRAIN_S = 50.0

#: No batch is refused for its size: a topic's segments are as small as 8 KiB. After a refusal
#: librdkafka numbers anew what it may have sent before, and doubles that at any broker.
BATCH_BYTES = 4_096

#: Those that kafka-python, by which batches are read in the end, has without other libraries.
CODECS = ("none", "gzip")

#: What a round's members agree on: half of the time the new protocol, else an assignor of the old.
STRATEGIES = ("range", "roundrobin", "cooperative-sticky")
PROTOCOLS: tuple[dict[str, object], ...] = (
    *({"group.protocol": "consumer"} for _ in STRATEGIES),
    *(
        {"partition.assignment.strategy": strategy, "session.timeout.ms": 6_000}
        for strategy in STRATEGIES
    ),
)


def serve(process: Process) -> None:
    """A gateway, until it is told to end."""
    while not process.stop.is_set():
        log = process.connect()
        try:
            with log.gateway(process.place.gateways[process.name]) as gateway:
                process.journal.write("serves", gateway.bootstrap_servers)
                while not process.stop.wait(0.2):
                    if not gateway.is_serving:
                        raise RuntimeError("the gateway ended by itself")
        except LakelogError as error:  # Redis is away
            process.journal.write("waits", str(error)[:300])
            process.stop.wait(0.3)
        finally:
            log.close()


def _client(process: Process, errors: list[ck.KafkaError], **settings: object) -> dict[str, Any]:
    return {
        "bootstrap.servers": ",".join(sorted(set(process.place.gateways.values()))),
        "socket.timeout.ms": REQUEST_MS,
        "reconnect.backoff.max.ms": 500,
        "error_cb": errors.append,
        **settings,
    }


# -- producers -------------------------------------------------------------------------------------


def produce(process: Process) -> None:
    is_durable = process.place.acks[process.name] in process.place.durable
    session = process.session
    while not process.stop.is_set():
        process.journal.write("session", session, is_durable)
        fatal = _Producer(process, session).run()
        if fatal is None:
            return
        process.journal.write("fatal", str(fatal))
        if is_durable:
            raise RuntimeError(f"nothing was lost, and the producer cannot go on: {fatal}")
        session += 1


class _Producer:
    """An idempotent producer, until it is told to end or cannot go on."""

    def __init__(self, process: Process, session: int) -> None:
        self._process, self._session = process, session
        self._errors: list[ck.KafkaError] = []
        self._producer = ck.Producer(
            _client(
                process,
                self._errors,
                **{
                    "enable.idempotence": True,
                    "request.timeout.ms": REQUEST_MS,
                    "message.timeout.ms": DELIVERY_MS,
                    "batch.size": BATCH_BYTES,
                    "linger.ms": process.draws.choice([0, 5, 20]),
                    "compression.type": process.draws.choice(CODECS),
                },
            )
        )

    def run(self) -> ck.KafkaError | None:
        """The error after which it cannot go on, if there was one."""
        draws, sequence = self._process.draws, 0
        while not self._process.stop.is_set() and self._fatal() is None:
            topic = draws.choice(list(TOPICS))
            count = draws.choice([1, 1, 2, 5, 12, 30])
            records = [(sequence + n, key_of(self._process, topic)) for n in range(count)]
            sequence += count
            self._process.journal.write("intent", topic, records)
            partition = draws.randrange(TOPICS[topic].partitions) if draws.random() < 0.3 else -1
            for number, key in records:
                self._send(topic, partition, number, key)
            self._producer.poll(draws.uniform(0, PAUSE_S))
        self._producer.flush(FLUSH_S)
        return self._fatal()

    def _send(self, topic: str, partition: int, sequence: int, key: str | None) -> None:
        payload = f"{self._process.name}.{self._session}.{sequence}"
        value = value_of(self._process, topic, payload)

        def answered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is None:
                told = message.partition(), message.offset()
                self._process.journal.write("ack", sequence, *told)
            else:
                self._process.journal.write("unknown", [sequence], str(error)[:200])

        try:
            self._producer.produce(
                topic,
                value,
                key=key,
                headers={PAYLOAD_HEADER: payload} if value is None else None,
                partition=partition,
                on_delivery=answered,
            )
        except ck.KafkaException as error:  # it cannot go on
            self._process.journal.write("refused", [sequence], str(error)[:200])

    def _fatal(self) -> ck.KafkaError | None:
        return next((error for error in self._errors if error.fatal()), None)


# -- members of the group --------------------------------------------------------------------------


def take_part(process: Process) -> None:
    protocol = random.Random(process.place.seed).choice(PROTOCOLS)
    ids = {
        fields[0]: fields[1]
        for kind, _, *fields in read_journal(process.place.journal_file("harness"))
        if kind == "created"
    }
    number = 0
    while not process.stop.is_set():
        member = _Member(process, f"{process.name}.{process.session}.{number}", protocol, ids)
        for _ in range(process.draws.randrange(20, 300)):
            if process.stop.is_set():
                break
            member.poll()
            if process.draws.random() < 0.4:
                member.commit()
        member.close()
        number += 1
    member = _Member(process, f"{process.name}.{process.session}.last", protocol, ids)
    member.drain()
    member.close()


class _Member:
    def __init__(
        self, process: Process, who: str, protocol: dict[str, object], ids: dict[str, str]
    ) -> None:
        self._process, self._who, self._ids = process, who, ids
        self._since: dict[tuple[str, int], int] = {}  # of what it has: the generation
        self._positions: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}  # that it came to, and nothing since
        process.journal.write("joins", who, protocol)
        self._errors: list[ck.KafkaError] = []
        self._consumer = ck.Consumer(
            _client(
                process,
                self._errors,
                **{
                    "group.id": GROUP,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 200,
                    **protocol,
                },
            )
        )
        self._consumer.subscribe(
            list(TOPICS), on_assign=self._given, on_revoke=self._taken, on_lost=self._taken
        )

    def poll(self) -> None:
        """Takes some records, as they come."""
        message = self._consumer.poll(0.2)
        for _ in range(self._process.draws.choice([1, 20, 500])):
            if message is None:
                return
            self._take(message)
            message = self._consumer.poll(0)
        if message is not None:
            self._take(message)

    def _take(self, message: ck.Message) -> None:
        error = message.error()
        where = message.topic(), message.partition()
        if error is not None:
            if error.code() == ck.KafkaError._PARTITION_EOF:
                self._ends[where] = message.offset()
            else:
                self._note(error)
            return
        self._ends.pop(where, None)
        self._positions[where] = message.offset() + 1
        self._process.journal.write(
            "handled",
            self._who,
            self._since.get(where, -1),
            self._ids[where[0]],
            where[1],
            [message.offset()],
            [payload_of(message.value(), message.headers() or ())],
        )

    def commit(self) -> None:
        """All that was handled of what it has."""
        generations = dict(self._since)
        asked_s = round(time.monotonic(), 4)
        offsets = [
            ck.TopicPartition(*where, offset)
            for where, offset in self._positions.items()
            if where in generations
        ]
        if not offsets:
            return
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False)
        except ck.KafkaException as error:
            self._note(error.args[0])
            return
        for one in answers:
            if one.error is not None:
                self._note(one.error)
                continue
            place = [self._ids[one.topic], one.partition, one.offset]
            generation_id = generations[one.topic, one.partition]
            self._process.journal.write("committed", self._who, generation_id, asked_s, [place])

    def drain(self) -> None:
        """Until all that it has is read, and committed; the others get it when it leaves."""
        deadline_s = time.monotonic() + DRAIN_S
        calm_s = None
        while time.monotonic() < deadline_s:
            self.poll()
            self.commit()
            if not self._since or self._since.keys() - self._ends.keys():
                calm_s = None
            elif calm_s is None:
                calm_s = time.monotonic()
            elif time.monotonic() - calm_s > 2.0:
                return

    def close(self) -> None:
        self._consumer.close()

    def _given(self, _: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        generation_id = int(time.monotonic() * 10_000)
        for one in partitions:
            self._since[one.topic, one.partition] = generation_id
        self._process.journal.write(
            "given", self._who, [(p.topic, p.partition) for p in partitions]
        )

    def _taken(self, _: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        self._process.journal.write(
            "taken", self._who, [(p.topic, p.partition) for p in partitions]
        )
        for one in partitions:
            for known in (self._since, self._positions, self._ends):
                known.pop((one.topic, one.partition), None)

    def _note(self, error: ck.KafkaError) -> None:
        self._process.journal.write("error", self._who, str(error)[:300])

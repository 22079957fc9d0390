"""lakelog gives the answers of a real Kafka broker, as they were recorded (see `differential`)."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from differential import recorded
from differential.answers import questions
from differential.compare import Comparison, compare
from differential.gateway_log import GatewayLog
from differential.kafka_log import KafkaClients
from differential.lakelog_log import LakelogLog
from differential.oddities import MAX_BELOW, SEQUENCE_FIRST, TIME_BELOW, KafkaSegment, oddity
from differential.workload import Append, Compact, DeleteRecords, Move, Retain, draw

from lakelog import Lakelog
from lakelog.base.clock import ManualClock

RECORDED = list(recorded.read())


def compared(number: int, redis_url: str, root: Path) -> list[Comparison]:
    """All comparisons of a recorded workload; it waits for nobody."""
    workload, begin_ms, kafka = list(recorded.read())[number]
    lakelog = LakelogLog(redis_url, root, workload, begin_ms)
    try:
        return list(compare(workload, kafka, lakelog, wait=lambda seconds: None))
    finally:
        lakelog.close()


#: As many workloads are compared each time; the others when asked for.
FEW = 4


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            number,
            marks=[pytest.mark.slow] if number >= FEW else [],
            id=f"seed{workload.seed}",
        )
        for number, (workload, *_) in enumerate(RECORDED)
    ],
)
def test_lakelog_answers_as_kafka_did(number: int, redis_url: str, tmp_path: Path) -> None:
    found = compared(number, redis_url, tmp_path)
    workload = RECORDED[number][0]
    asked = sum(
        1 if isinstance(step, Move) else 1 + len(questions(workload, number))
        for number, step in enumerate(workload.steps)
    )
    assert [one for one in found if one.is_unexplained] == []
    assert len(found) == asked


#: Broker and clients' answers, likewise.
TO_CLIENTS = list(recorded.read(recorded.CLIENTS_FILE, for_clients=True))
FEW_OF_CLIENTS = 1


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            number,
            marks=[pytest.mark.slow] if number >= FEW_OF_CLIENTS else [],
            id=f"seed{workload.seed}",
        )
        for number, (workload, *_) in enumerate(TO_CLIENTS)
    ],
)
def test_a_gateway_answers_clients_as_kafka_did(
    number: int, redis_url: str, tmp_path: Path
) -> None:
    recording = recorded.read(recorded.CLIENTS_FILE, for_clients=True)
    workload, begin_ms, kafka = list(recording)[number]
    with ExitStack() as stack:
        lake = stack.enter_context(
            Lakelog.connect(redis_url, tmp_path, engine="inline", clock=ManualClock(begin_ms))
        )
        clients = []
        for codec in ("zstd", "none"):
            gateway = stack.enter_context(lake.gateway("127.0.0.1:0"))
            clients.append(KafkaClients(gateway.bootstrap_servers, codec))
            stack.callback(clients[-1].close)
        lakelog = GatewayLog((clients[0], clients[1]), workload, begin_ms, lake)
        found = list(compare(workload, kafka, lakelog, wait=lambda seconds: None))
    assert [one for one in found if one.is_unexplained] == []
    assert {one.step_number for one in found} == set(range(len(workload.steps)))


def test_the_recorded_workloads_do_everything():
    steps = {
        (type(step).__name__, workload.tiered)
        for workload, _, _ in RECORDED
        for step in workload.steps
    }
    assert {(kind.__name__, True) for kind in (Append, DeleteRecords, Retain, Compact, Move)} <= (
        steps
    )
    assert ("Retain", False) in steps
    assert {workload.kind for workload, _, _ in RECORDED} == {"delete", "compact", "compact,delete"}


@pytest.mark.parametrize(
    "question", ["earliest", "latest", "records", "time", "from", "max-timestamp", "step"]
)
def test_one_wrong_answer_is_found(question: str, redis_url: str, tmp_path: Path) -> None:
    """Whichever question it is the answer to."""
    workload, begin_ms, kafka = next(recorded.read())
    ask, take = kafka.ask, kafka.take
    asked_times = count()

    def lie(asked: str, answer: object) -> object:
        if asked.split()[0] != question or next(asked_times):
            return answer
        return [10**9, 0]

    kafka.ask = lambda asked: lie(asked, ask(asked))  # type: ignore[method-assign]
    kafka.take = lambda step: lie("step", take(step))  # type: ignore[method-assign]
    lakelog = LakelogLog(redis_url, tmp_path, workload, begin_ms)
    try:
        found = list(compare(workload, kafka, lakelog, wait=lambda seconds: None))
    finally:
        lakelog.close()
    (unexplained,) = [one for one in found if one.is_unexplained]
    assert unexplained.question.split()[0] == question


def test_a_seed_always_draws_the_same_workload():
    assert draw(7) == draw(7)
    assert recorded.fingerprint(draw(7)) != recorded.fingerprint(draw(8))


# -- what is explained, and what is not ------------------------------------------------------------

RECORDS = [[3, 500, None, None, []], [4, 100, None, None, []]]
SEGMENTS = [
    KafkaSegment(0, 50, ((0, 50), (1, 60), (2, 500), (3, 500))),
    KafkaSegment(4, 100, ((4, 100),)),
]


def explained(question: str, kafka: object, lakelog: object, earliest: int = 2) -> str | None:
    return oddity(question, kafka, lakelog, RECORDS, earliest, SEGMENTS)


def test_none_is_explained_where_a_segment_reaches_the_time_below_the_log_start():
    assert explained("time 100", None, [4, 100]) == TIME_BELOW
    assert explained("time 40", None, [4, 100]) is None  # nothing there is so young
    assert explained("time 100", None, [4, 100], earliest=0) is None  # nothing lies below
    assert explained("time 500", None, [3, 500]) is None  # the segment itself has it
    assert explained("time 100", [3, 500], [4, 100]) is None  # only none is


def test_max_timestamp_is_explained_below_the_log_start():
    assert explained("max-timestamp", [0, 50], [4, 100]) == MAX_BELOW
    assert explained("max-timestamp", [3, 500], [4, 100]) is None
    assert explained("max-timestamp", None, [4, 100]) is None


def test_a_batch_of_which_two_things_are_wrong_is_refused_for_either() -> None:
    assert explained("step", ["INVALID_TIMESTAMP", [0]], ["INVALID_PRODUCER_EPOCH", []]) == (
        SEQUENCE_FIRST
    )
    assert explained("step", ["INVALID_PRODUCER_EPOCH", []], ["INVALID_TIMESTAMP", [0]]) is None
    assert explained("step", ["INVALID_TIMESTAMP", [0]], 4) is None
    assert explained("step", 4, ["INVALID_PRODUCER_EPOCH", []]) is None


@pytest.mark.parametrize("question", ["earliest", "latest", "records", "from 3", "step"])
def test_nothing_else_is_ever_explained(question: str) -> None:
    assert explained(question, None, 3) is None

"""What a gap costs: nothing who looks or counts, one look more who reads over it, however wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from lakelog.read.lag import count_records
from lakelog.read.tiers import Tiers

HOUR = 3_600_000 * 16_384  # offsets that an hour's outage skips

#: Redis's commands of a look that a reader takes before it goes over a gap, those of the script
#: among them: cold may have got the first records of what hot lost. Then it reads on, once more.
A_LOOK = 12
A_STEP_BYTES = 6 * 1024  # of the twenty records above the gap, and what declares it


@pytest.fixture
def make_log(make_bench: Callable[..., Any]) -> Callable[..., Any]:
    """60 records, and after the first 40 a gap of so many offsets; cold up to `archived` records.

    Returns the bench and its offsets.
    """

    def make(gap: int, archived: int) -> tuple[Any, list[int]]:
        bench = make_bench()
        bench.append(range(40))
        if gap:
            bench.log.recover(0, 40 + gap)
        bench.append(range(40, 60))
        offsets = [record.offset for record in bench.appended[0]]
        if archived:
            bench.tier(offsets[archived - 1] + 1, offsets[archived - 1] + 1)
        return bench, offsets

    return make


ASKED: dict[str, Callable[[Any, list[int]], Any]] = {
    "offsets": lambda bench, at: bench.log.offsets()[0].unarchived,
    "look": lambda bench, at: bool(Tiers(bench.topic, bench.hot, bench.table).look([0])),
    "read": lambda bench, at: [one.value for one in bench.log.read(0).records()][-20:] == [],
    "count": lambda bench, at: bench.log.count(0),
    "sample": lambda bench, at: bench.log.sample(30).num_rows,
    "by time": lambda bench, at: at.index(bench.log.seek(0, "@45")),
    "newest": lambda bench, at: at.index(bench.log.seek(0, "max-timestamp")),
    "from the edge": lambda bench, at: len(bench.fetched(40)),
    "consume": lambda bench, at: consumed(bench),
    "delete": lambda bench, at: bench.log.records_below(0, at[50]),
}


OVER_THE_GAP = {"read", "from the edge", "consume"}


def consumed(bench: Any) -> int:
    consumer = bench.consumer(auto_offset_reset="earliest")
    consumer.assign([bench.topic.partition(0)])
    count = 0
    while found := consumer.poll(0):
        count += sum(map(len, found.values()))
    return count


@pytest.mark.slow
@pytest.mark.parametrize("archived", [0, 30, 40, 50])
@pytest.mark.parametrize("what", list(ASKED))
def test_an_hour_long_gap_costs_what_it_costs_without(
    make_log: Any, redis_client: redis.Redis, what: str, archived: int
) -> None:
    answers, commands, sent = [], [], []
    for gap in (0, 1, HOUR):
        bench, offsets = make_log(gap, archived)
        ASKED[what](bench, offsets)  # scripts are loaded, connections are open
        bench.log = bench.open()
        before = redis_client.info("stats")
        answers.append(ASKED[what](bench, offsets))
        after = redis_client.info("stats")
        names = ("total_commands_processed", "total_net_output_bytes")
        calls, size_bytes = (after[name] - before[name] for name in names)
        commands.append(calls)
        sent.append(size_bytes)
    assert answers[0] == answers[1] == answers[2]
    assert commands[2] <= commands[1]
    assert commands[1] <= commands[0] + (A_LOOK if what in OVER_THE_GAP else 0)
    assert sent[2] <= 1.25 * sent[1]  # offsets of more digits
    assert sent[1] <= sent[0] + A_STEP_BYTES


def test_a_look_counts_the_records_beside_a_gap_for_nothing(
    make_log: Any, redis_client: redis.Redis
) -> None:
    bench, offsets = make_log(HOUR, 30)
    look = Tiers(bench.topic, bench.hot, bench.table).look([0])
    before = redis_client.info("stats")["total_commands_processed"]
    assert count_records(look, 0, 0, offsets[-1] + 1).records == 60
    assert redis_client.info("stats")["total_commands_processed"] == before + 1  # INFO's own

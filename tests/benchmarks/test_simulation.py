"""The simulation against closed forms, and what it must show whatever is measured."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest

from .measures import quantile
from .queueing import Events, Station
from .simulation import Cluster, Outcome, Services, simulate

SERVICES = Services(
    append_s=0.004, read_s=0.001, send_s=0.003, archive_s=0.005, task_s=0.002, commit_s=0.05
)
ARRIVALS, RATE = 80_000, 1.0


def sojourns(load: float, service: Callable[[random.Random], float]) -> list[float]:
    """How long each of those stays who come at random, one a second, to one server."""
    events, chance, found = Events(), random.Random(7), []
    station = Station(events)

    def come() -> None:
        came_s = events.now_s
        station.serve(load * service(chance), lambda: found.append(events.now_s - came_s))
        if len(found) < ARRIVALS:
            events.after(chance.expovariate(RATE), come)

    events.after(0, come)
    events.run(math.inf)
    return found


def test_random_service_is_m_m_1() -> None:
    load = 0.7
    found = sojourns(load, lambda chance: chance.expovariate(1.0))
    stay_s = load / (1 - load) / RATE  # mean; it is exponentially distributed
    assert statistics.mean(found) == pytest.approx(stay_s, rel=0.05)
    assert quantile(found, 0.5) == pytest.approx(stay_s * math.log(2), rel=0.05)
    assert quantile(found, 0.99) == pytest.approx(stay_s * math.log(100), rel=0.08)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_constant_service_is_m_d_1(load: float) -> None:
    found = sojourns(load, lambda _: 1.0)
    stay_s = load * (1 + load / 2 / (1 - load)) / RATE
    assert statistics.mean(found) == pytest.approx(stay_s, rel=0.05)
    assert min(found) == pytest.approx(load)


def test_two_servers_are_m_m_2() -> None:
    events, chance, found = Events(), random.Random(3), []
    station, load = Station(events, 2), 0.7  # of each

    def come() -> None:
        came_s = events.now_s
        seconds = 2 * load * chance.expovariate(1.0)
        station.serve(seconds, lambda: found.append(events.now_s - came_s))
        if len(found) < ARRIVALS:
            events.after(chance.expovariate(RATE), come)

    events.after(0, come)
    events.run(math.inf)
    # Erlang's C for two servers: a wait of load² / (1 - load²) services.
    stay_s = 2 * load * (1 + load**2 / (1 - load**2))
    assert statistics.mean(found) == pytest.approx(stay_s, rel=0.05)


def test_what_is_due_at_once_happens_in_the_order_in_which_it_was_said() -> None:
    events, happened = Events(), []
    for number in range(5):
        events.after(1.0, lambda number=number: happened.append(number))
    events.after(0.5, lambda: happened.append("before"))
    events.run(2.0)
    assert happened == ["before", 0, 1, 2, 3, 4]
    assert events.now_s == 2.0


def cluster(**changed: object) -> Outcome:
    return simulate(Cluster(**{"services": SERVICES, "load": 0.3, "nodes": 10, **changed}))


def test_nodes_that_append_alone_are_m_d_1_and_the_same_again() -> None:
    found = cluster(load=0.6, archives=False, seconds=30.0)
    stay_s = SERVICES.append_s * (1 + 0.6 / 2 / 0.4)
    assert statistics.mean(found.appended) == pytest.approx(stay_s, rel=0.05)
    assert found.redis_load == pytest.approx(0.6, rel=0.05)
    assert (found.core_load, found.archived) == (0, [])
    assert cluster(seconds=3.0) == cluster(seconds=3.0) != cluster(seconds=3.0, seed=1)


def test_what_is_archived_costs_redis_its_reads_and_keeps_to_the_interval() -> None:
    found = cluster(seconds=30.0)
    share = SERVICES.redis_s / SERVICES.append_s
    assert found.redis_load == pytest.approx(0.3 * share, rel=0.1)
    assert 0.5 < statistics.mean(found.archived) < 1.5  # half the interval, and the run
    alone = cluster(seconds=30.0, archives=False)
    assert quantile(found.appended, 0.99) > quantile(alone.appended, 0.99)


def test_archiving_falls_behind_where_its_cores_do_not_suffice() -> None:
    few, enough = (cluster(load=0.7, cores=cores, seconds=20.0) for cores in (1, 3))
    assert few.core_load > 0.8 > enough.core_load
    assert few.left > enough.left
    assert quantile(few.archived, 0.5) > 2 * quantile(enough.archived, 0.5)


def test_a_hot_node_is_slow_alone() -> None:
    even, hot = (cluster(load=0.2, heat=heat, seconds=20.0) for heat in (1.0, 4.5))
    assert quantile(hot.appended_first, 0.99) > 3 * quantile(even.appended_first, 0.99)
    assert quantile(hot.appended, 0.99) < 1.5 * quantile(even.appended, 0.99)

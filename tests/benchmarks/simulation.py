"""A hundred nodes that do not exist, with service times that were measured: how long things wait.

A node is a Redis server, whose one thread serves what came first, and cores for archive tasks,
which take any partition. Calls of a mebibyte come to each node at random times (a Poisson process).
Each topic has a partition on each node, and is archived once a second, or as soon as the last run
has ended: a task for each partition that has something, on any free core, reads from its Redis in
steps (which wait among the appends, and keep appends waiting), works, and when the last task of the
topic is done one commit follows, after which its records are in the table. Service times are
constant, since Redis's and an archiver's grow with bytes alone; what varies is who meets whom.

Not in it: the network, the producers' machines, stores that slow down, Redis's snapshots. So it
says what queues do at best.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from lakelog.values.config import GIB, MIB

from .curves import CPU_HERE, CPU_OF_REDIS, Curve
from .line_chart import Line, Panel
from .measures import SECONDS, quantile
from .queueing import Events, Station

CALL_BYTES = MIB  # `send_batch` cuts its calls so
STEP_CALLS = 8  # an archiver's read step: `READ_STEP_BYTES`
LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8)
HEATS = (1, 2, 3, 4, 5, 6)
HEAT_LOAD = 0.2


@dataclass(frozen=True)
class Services:
    """Seconds, measured; of `CALL_BYTES` where bytes count."""

    append_s: float  # Redis's thread
    read_s: float  # Redis's thread, for an archiver or another reader
    send_s: float  # a producer's core
    archive_s: float  # a core of an archiver
    task_s: float  # a core, for a partition that has anything
    commit_s: float  # a table

    @property
    def redis_s(self) -> float:
        """Of Redis's thread for a call that is appended and archived."""
        return self.append_s + self.read_s


def services(found: Sequence[Curve], value_bytes: int = 1_000, files: int = 10_000) -> Services:
    """Of values of one size, and of tables of so many files at most.

    Raises:
        ValueError: the figures lack one of them.
    """

    def at(axis: str, measure: str, most: int) -> tuple[int, float]:
        for curve in found:
            if (curve.axis, curve.measure) == (axis, measure):
                fitting = [point for point in curve.points if point[0] <= most]
                return fitting[-1] if fitting else curve.points[0]
        raise ValueError(f"there is no figure of {axis}: {measure}; measure `growth` as a whole")

    def of_a_call(way: str, who: str) -> float:
        size, seconds = at("bytes of a value", f"{way}, CPU of both{who}", value_bytes)
        return seconds / size * CALL_BYTES

    archived = "a record of each archived"
    partitions, all_s = at("partitions", archived + CPU_HERE, 1_000)
    return Services(
        append_s=of_a_call("`send_batch`", CPU_OF_REDIS),
        read_s=of_a_call("`archive`", CPU_OF_REDIS),
        send_s=of_a_call("`send_batch`", CPU_HERE),
        archive_s=of_a_call("`archive`", CPU_HERE),
        task_s=all_s / partitions,
        commit_s=at("segments", "cold: a commit", files)[1],
    )


@dataclass(frozen=True)
class Cluster:
    """What is simulated.

    Args:
        load: of each Redis's thread by appends alone, 0 to 1.
        heat: how many times its share the first node gets, at the others' expense.
        cores: of a node, for archive tasks.
        archives: False: appends alone.
    """

    services: Services
    load: float
    nodes: int = 100
    cores: int = 2
    topics: int = 4
    heat: float = 1.0
    archives: bool = True
    interval_s: float = 1.0
    seconds: float = 8.0
    warm_s: float = 2.0
    seed: int = 0


@dataclass
class Outcome:
    """What was seen once it was warm: seconds of each call, by what it waited for."""

    appended: list[float] = field(default_factory=list)  # of all nodes but the first
    appended_first: list[float] = field(default_factory=list)  # of the first one, the hot one
    archived: list[float] = field(default_factory=list)  # append's end → committed
    left: int = 0  # calls that were appended and not archived at the end
    redis_load: float = 0.0  # of all threads
    core_load: float = 0.0  # of all cores


class _Run:
    def __init__(self, cluster: Cluster) -> None:
        self._of = cluster
        self._events = Events()
        self._chance = random.Random(cluster.seed)
        self._redis = [Station(self._events) for _ in range(cluster.nodes)]
        self._cores = Station(self._events, cluster.nodes * cluster.cores)
        self._tables = [Station(self._events) for _ in range(cluster.topics)]
        #: When the calls of a topic's partition were in that no task has taken.
        self._waiting: list[list[list[float]]] = [
            [[] for _ in range(cluster.nodes)] for _ in range(cluster.topics)
        ]
        self._cores_s = 0.0
        self._seen = Outcome()

    def __call__(self) -> Outcome:
        of = self._of
        rest = (of.nodes - of.heat) / (of.nodes - 1) if of.nodes > 1 else 1.0
        for node in range(of.nodes):
            share = of.heat if node == 0 else rest
            if share > 0:
                self._arrive(node, of.load * share / of.services.append_s)
        if of.archives:
            for topic in range(of.topics):
                first_s = of.interval_s * (1 + topic / of.topics)
                self._events.after(first_s, lambda topic=topic: self._archive(topic))
        self._events.run(of.seconds)
        seen = self._seen
        seen.left = sum(len(calls) for topic in self._waiting for calls in topic)
        seen.redis_load = sum(one.busy_s for one in self._redis) / of.nodes / of.seconds
        seen.core_load = self._cores_s / (of.nodes * of.cores) / of.seconds
        return seen

    def _arrive(self, node: int, a_second: float) -> None:
        topics = count(node)

        def come() -> None:
            self._append(node, next(topics) % self._of.topics)
            self._events.after(self._chance.expovariate(a_second), come)

        self._events.after(self._chance.expovariate(a_second), come)

    def _append(self, node: int, topic: int) -> None:
        asked_s = self._events.now_s

        def done() -> None:
            self._waiting[topic][node].append(self._events.now_s)
            if asked_s >= self._of.warm_s:
                told = self._seen.appended if node else self._seen.appended_first
                told.append(self._events.now_s - asked_s)

        self._redis[node].serve(self._of.services.append_s, done)

    def _archive(self, topic: int) -> None:
        """A run: tasks, the commit when all are done, and the next run."""
        began_s = self._events.now_s
        taken = self._waiting[topic]
        self._waiting[topic] = [[] for _ in taken]
        tasks = [(node, len(calls)) for node, calls in enumerate(taken) if calls]
        left = len(tasks)

        def task_done() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._tables[topic].serve(self._of.services.commit_s, committed)

        def committed() -> None:
            now_s = self._events.now_s
            if began_s >= self._of.warm_s:
                self._seen.archived += (now_s - at_s for calls in taken for at_s in calls)
            again()

        def again() -> None:
            passed_s = self._events.now_s - began_s
            wait_s = max(0.0, self._of.interval_s - passed_s)
            self._events.after(wait_s, lambda: self._archive(topic))

        for node, calls in tasks:
            self._cores.enter(lambda node=node, calls=calls: self._task(node, calls, task_done))
        if not tasks:
            again()

    def _task(self, node: int, calls: int, done: Callable[[], None]) -> None:
        """Holds a core: reads a step, works on it, and so on."""
        services = self._of.services
        began_s = self._events.now_s

        def step(left: int) -> None:
            if not left:
                self._cores_s += self._events.now_s - began_s
                self._cores.leave()
                done()
                return
            taken = min(STEP_CALLS, left)
            self._redis[node].serve(services.read_s * taken, lambda: work(taken, left - taken))

        def work(taken: int, left: int) -> None:
            self._events.after(services.archive_s * taken, lambda: step(left))

        self._events.after(services.task_s, lambda: step(calls))


def simulate(cluster: Cluster) -> Outcome:
    """The same for the same cluster."""
    return _Run(cluster)()


def panels(services: Services, like: Cluster | None = None) -> list[Panel]:
    """How long appends wait and archiving lags, by load; and appends to a node that is hot.

    Args:
        like: a cluster of which loads and heats differ; None: a hundred nodes.
    """
    base = replace(like or Cluster(services, 0.0), services=services)
    alone = [simulate(replace(base, load=load, archives=False)) for load in LOADS]
    both = [simulate(replace(base, load=load)) for load in LOADS]
    narrow = [simulate(replace(base, load=load, cores=1)) for load in LOADS]
    hot = [simulate(replace(base, load=HEAT_LOAD, heat=heat)) for heat in HEATS]
    closed = [services.append_s * (1 + load / 2 / (1 - load)) for load in LOADS]

    def line(
        label: str, xs: Iterable[float], values: Iterable[Sequence[float]], share: float
    ) -> Line:
        found = [(x, quantile(those, share)) for x, those in zip(xs, values, strict=True) if those]
        return Line(label, found)

    appends = [
        line("p99, archiving beside it", LOADS, [one.appended for one in both], 0.99),
        line("p50, archiving beside it", LOADS, [one.appended for one in both], 0.5),
        line("p99, appends alone", LOADS, [one.appended for one in alone], 0.99),
        line("p50, appends alone", LOADS, [one.appended for one in alone], 0.5),
        Line("mean of M/D/1, appends alone", list(zip(LOADS, closed, strict=True)), dashed=True),
    ]
    lags = [
        line("p99, a core a node", LOADS, [one.archived for one in narrow], 0.99),
        line("p50, a core a node", LOADS, [one.archived for one in narrow], 0.5),
        line(f"p99, {base.cores} cores a node", LOADS, [one.archived for one in both], 0.99),
        line(f"p50, {base.cores} cores a node", LOADS, [one.archived for one in both], 0.5),
    ]
    heat = [
        line("p99 on the hot node", HEATS, [one.appended_first for one in hot], 0.99),
        line("p50 on the hot node", HEATS, [one.appended_first for one in hot], 0.5),
        line("p99 on the others", HEATS, [one.appended for one in hot], 0.99),
    ]
    of = f"{base.nodes} nodes"
    by = "load of a Redis by appends alone"
    return [
        Panel(f"An append of 1 MiB, {of}", by, SECONDS, appends, linear_x=True),
        Panel(f"From appended to committed, {of}", by, SECONDS, lags, linear_x=True),
        Panel(
            f"An append where one node is hot, mean load {HEAT_LOAD:g}",
            "times its share",
            SECONDS,
            heat,
            linear_x=True,
        ),
    ]


def bytes_per_s(seconds_a_call: float) -> float:
    """What one server or core takes of what costs it so long a call."""
    return CALL_BYTES / seconds_a_call / GIB if seconds_a_call else math.inf

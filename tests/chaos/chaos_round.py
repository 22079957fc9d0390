"""One round: servers and processes start, acts happen, all is healed, read and judged."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakelog.base.back_off import POLL, BackOff, Tries, wait_until
from lakelog.cold.reserve import reserve
from lakelog.errors import LakelogError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.lakelog import Lakelog
from lakelog.values.reservation import Wanted
from tests.support.servers import free_port

from . import keeping, schedule
from .catalogs import Catalog, catalog
from .final_read import read_final_logs
from .grouping import GROUP
from .history import (
    Creation,
    History,
    Outcome,
    Partition,
    consumptions_of,
    erasures_of,
    group_commits_of,
    group_reads_of,
    sends_of,
    tasks_of,
)
from .journal import read_journal
from .losing import Losing
from .nemesis import Nemesis
from .oracle import Anomaly, judge
from .places import ObjectStore, ReplicatedCluster, SingleServer
from .processes import END_S, Processes
from .scenario import GATEWAY_DEFAULTS, SCENARIOS, STREAMED_TOPIC, TOPICS, Scenario
from .streaming import streamed
from .worker import Place, Process, ShiftedClock

ROLES = {"producer": 3, "archiver": 2, "consumer": 2, "member": 3, "janitor": 1, "sink": 1}

#: By name: beside so many, Spark comes to work on a small machine.
FEW = {**ROLES, "producer": 1, "consumer": 1, "member": 2}

#: With gateways, of which there are two.
FEWER = {**ROLES, "archiver": 1, "consumer": 1, "gateway": 2}

#: Rounds shorter than this have no Spark stream: it takes most of them to start.
STREAM_ROUND_S = 100.0

#: Rare: each start of a Spark costs both cores some ten seconds.
STREAM_LANE = schedule.Lane(("kill-stream",), pause_s=50.0, longest_s=0.3)

#: How long processes may take to begin; by name, with a Spark.
START_S = 60.0
SPARK_START_S = 240.0

#: How long who has a Spark may take to end in order: what it is about comes to its end.
SPARK_END_S = 240.0

#: How often the end is asked for again before the log counts as unreadable. Retriable errors only.
ARCHIVING = BackOff(0.5, 1.0, tries=5)


@dataclass(slots=True)
class RoundResult:
    """What a round came to."""

    plan: schedule.RoundPlan
    seconds: float = 0.0
    sent: Counter[Outcome] = field(default_factory=Counter)
    read: int = 0  # records that consumers were given
    handled: int = 0  # records that members of the group were
    commits: int = 0  # of theirs
    in_the_log: int = 0  # records in the end
    gaps: int = 0  # declared
    acts: Counter[str] = field(default_factory=Counter)
    processes: Counter[str] = field(default_factory=Counter)
    lives: int = 0  # of topics
    anomalies: list[Anomaly] = field(default_factory=list)


def run_round(
    plan: schedule.RoundPlan,
    folder: Path,
    say: Callable[[str], None],
    *,
    run_began_s: float,
    archivers_outlive: bool,
    unity: Path | None = None,
) -> RoundResult:
    """Runs a round in a folder of its own; nothing that it started is left when it returns."""
    began_s = time.monotonic()
    scenario = SCENARIOS[plan.scenario]
    folder.mkdir(parents=True)
    result = RoundResult(plan)
    history = History()
    with (
        _catalog(scenario, folder, unity) as by_name,
        _place(scenario, folder, plan.seed, by_name) as (place, server, store),
    ):
        streams = scenario.may_stream and plan.seconds >= STREAM_ROUND_S
        roles = FEW if by_name else {**ROLES, "stream": 1} if streams else ROLES
        if scenario.has_gateways:
            roles = FEWER
        end_s = SPARK_END_S if by_name else END_S
        processes = Processes(folder, roles, plan.seed, end_s)
        clock = ShiftedClock(Path(place.clock_file)) if place.clock_file else None
        lanes = (*scenario.lanes, *([STREAM_LANE] if streams else []))
        acts = schedule.acts(plan.seed, plan.seconds, lanes)
        try:
            harness = Process("harness", folder, listens=False)
            losing = None
            if scenario.loses_redis:
                assert isinstance(server, SingleServer)
                losing = Losing(harness, server, lambda: _last_lives(place))
            nemesis = Nemesis(processes, server, store, clock, losing, by_name, say)
            with place.connect() as log:
                if scenario.has_gateways:
                    log.topics.set_defaults(GATEWAY_DEFAULTS)
                for name in TOPICS:
                    keeping.create(harness, log, name)
                    if by_name is not None and by_name.front is not None:
                        _make_table(log, name)
            processes.start()
            say(f"{time.monotonic() - began_s:6.1f} s  beginning")
            _await_everybody(place, processes, SPARK_START_S if by_name else START_S)
            say(f"{time.monotonic() - began_s:6.1f} s  hurting")
            left_s = run_began_s + plan.ends_s - time.monotonic()
            result.acts = nemesis.run(acts, max(schedule.LEAST_ROUND_S, left_s))
            say(f"{time.monotonic() - began_s:6.1f} s  healing")
            _heal(server, store, by_name)
            say(f"{time.monotonic() - began_s:6.1f} s  ending")
            _end(processes, history)
            say(f"{time.monotonic() - began_s:6.1f} s  reading")
            history.losses, history.restarts = server.losses, server.restarts
            history.total_losses = losing.losses if losing else []
            plain = store.plain_options if store else None
            _read_all(place, plain, harness, processes, history)
        finally:
            processes.close()
        result.processes = processes.counts
        for name, code in processes.endings:
            # A source that fails ends a Spark stream; whoever runs one starts it again.
            may_end = "stream" if archivers_outlive else ("stream", "archiver")
            if not name.startswith(may_end):
                history.troubles.append(
                    ("process ended", f"{name} by itself, with exit code {code}; see its log")
                )
    say(f"{time.monotonic() - began_s:6.1f} s  judging")
    _gather(place, history)
    if streams:
        history.consumptions += streamed(
            place.folder, [final for final in history.finals if final.topic == STREAMED_TOPIC]
        )
    result.anomalies = judge(history)
    result.sent = Counter(send.outcome for send in history.sends)
    result.read = sum(len(one.seen) for one in history.consumptions)
    result.handled = sum(len(one.offsets) for one in history.group_reads)
    result.commits = len({(one.member, one.acked_s) for one in history.group_commits})
    result.in_the_log = sum(len(next(iter(f.readings.values()))) for f in history.finals)
    result.gaps = sum(len(final.gaps) for final in history.finals)
    result.lives = len(history.creations)
    result.seconds = time.monotonic() - began_s
    return result


@contextlib.contextmanager
def _catalog(scenario: Scenario, folder: Path, unity: Path | None) -> Iterator[Catalog | None]:
    if scenario.catalog is None:
        yield None
        return
    with catalog(scenario.catalog, folder, unity) as by_name:
        yield by_name


@contextlib.contextmanager
def _place(
    scenario: Scenario, folder: Path, seed: int, by_name: Catalog | None
) -> Iterator[tuple[Place, SingleServer | ReplicatedCluster, ObjectStore | None]]:
    with contextlib.ExitStack() as servers:
        store = None
        if scenario.has_store:
            store = ObjectStore()
            servers.callback(store.stop)
            store.start()
        kind = ReplicatedCluster if scenario.place == "cluster" else SingleServer
        server = kind(folder / "redis", scenario.redis)
        servers.callback(server.stop)
        server.start()
        clock_file = folder / "clock"
        clock_file.write_text("0")
        place = Place(
            redis_url=server.url,
            cold=store.root if store else by_name.schema if by_name else str(folder / "cold"),
            storage_options=store.options if store else None,
            clock_file=str(clock_file) if scenario.has_clock else None,
            seed=seed,
            folder=str(folder),
            acks={
                f"producer{number}": scenario.acks[number % len(scenario.acks)]
                for number in range(ROLES["producer"])
            },
            durable=scenario.durable,
            # Spark's own catalog is in one Spark alone.
            spark_conf=dict(by_name.conf) if by_name and by_name.conf else None,
            tables_at=by_name.tables_at if by_name else None,
            gateways=_gateways(seed) if scenario.has_gateways else {},
            kafka_topics=_kafka_topics(seed) if scenario.has_gateways else (),
        )
        place.save()
        yield place, server, store


def _gateways(seed: int) -> dict[str, str]:
    """Where each gateway listens: all at one address, or each at its own."""
    one = f"127.0.0.1:{free_port()}"
    other = one if seed % 2 else f"127.0.0.1:{free_port()}"
    return {"gateway0": one, "gateway1": other}


def _kafka_topics(seed: int) -> tuple[str, ...]:
    draws = random.Random(seed)
    return tuple(name for name in TOPICS if draws.random() < 0.6)


def _make_table(log: Lakelog, name: str) -> None:
    """In peace: of two who make one at once a Unity Catalog server takes both, and then tells
    nothing of either. A lock in Redis keeps the second one away, but not if Redis loses it, or if
    a Spark goes on with what a client asked for that was killed.
    """
    table = log.log(name).table
    if table is not None:
        reserve(table, {0: Wanted(0)})


def _await_everybody(place: Place, processes: Processes, within_s: float) -> None:
    """What is done to a process that has not begun yet harms nobody."""
    files = [place.journal_file(name) for role in FEWER for name in processes.names(role)]
    if not wait_until(
        "processes to begin",
        lambda: all(file.exists() and file.stat().st_size for file in files),
        POLL.within(within_s),
    ):
        raise RuntimeError("processes did not begin; see their logs")


def _heal(
    server: SingleServer | ReplicatedCluster, store: ObjectStore | None, by_name: Catalog | None
) -> None:
    if store is not None:
        store.heal()
    if by_name is not None:
        by_name.heal()
    server.heal()


def _end(processes: Processes, history: History) -> None:
    """Those who write first, consumers later: they are to come to the end of what was written."""
    processes.hold()
    processes.revive("gateway")
    late = processes.end("producer", "sink", "janitor", "archiver")
    history.troubles += [("process ended", one) for one in late]
    processes.revive("consumer")
    processes.revive("member")
    processes.revive("stream")


def _read_all(
    place: Place,
    plain_options: dict[str, str] | None,
    harness: Process,
    processes: Processes,
    history: History,
) -> None:
    with place.connect() as log:
        for name in TOPICS:
            if name not in {topic.name for topic in log.topics.list()}:
                keeping.create(harness, log, name)
        try:
            _delete_again(place, log, harness)
            _archive(log)
            _recover(log)
        except LakelogError as error:
            history.troubles.append(("archive fails", f"{type(error).__name__}: {error}"))
        history.troubles += [
            ("process ended", late) for late in processes.end("consumer", "member", "stream")
        ]
        history.troubles += [("process ended", late) for late in processes.end("gateway")]
        history.group_end = _group_end(log)
        read_final_logs(log, place.redis_url, place.cold, plain_options, history)
        history.creations = _creations(place, log)


def _group_end(log: Lakelog) -> dict[Partition, int]:
    """What the members have committed, of topics as they are now."""
    committed = GroupCoordinator(log.hot.connections).committed(GROUP)
    return {
        Partition(str(one.topic_id), tp.partition): one.committed.offset
        for tp, one in committed.items()
    }


def _delete_again(place: Place, log: Lakelog, harness: Process) -> None:
    """Topics that were deleted, which Redis has lost: their tables know it, so nothing more can be
    archived of them until somebody says again what is to hold.
    """
    deleted = {
        fields[1]
        for number in range(ROLES["janitor"])
        for kind, _, *fields in read_journal(place.journal_file(f"janitor{number}"))
        if kind == "dropping"
    }
    for topic in log.topics.list():
        if str(topic.topic_id) in deleted:
            keeping.recreate(harness, log, topic.name)


def _archive(log: Lakelog) -> None:
    """All there is, until nothing is left to do; what may pass is tried again."""
    tries = Tries("archiving all there is", ARCHIVING)
    while True:
        try:
            if not any(log.archive()):
                return
        except LakelogError as error:
            tries.wait(error)


def _recover(log: Lakelog) -> None:
    """Have declared what a server lost that was hurt after the last append, as whoever comes next
    would; consumers are to read over it, so while they still run.
    """
    for topic in log.topics.list():
        unified = log.log(topic)
        for number, offsets in unified.offsets().items():
            if not offsets.recovered:
                unified.recover(number, 0)


def _created(place: Place) -> list[tuple[float, str, str]]:
    """When a topic was made, or made again of an earlier life: time, name and id, in order."""
    found = []
    for name in ("harness", *(f"janitor{n}" for n in range(ROLES["janitor"]))):
        for kind, at_s, *fields in read_journal(place.journal_file(name)):
            if kind == "created":
                found.append((at_s, *fields))
    return sorted(found)


def _last_lives(place: Place) -> dict[str, str]:
    """The id of the life of each topic that was made last."""
    return {name: topic_id for _, name, topic_id in _created(place)}


def _creations(place: Place, log: Lakelog) -> list[Creation]:
    """All lives of all topics, by the journals of those who made them."""
    lives = {
        topic_id: Creation(topic, topic_id, TOPICS[topic].kind, at_s, False)
        for at_s, topic, topic_id in _created(place)
    }
    for topic in log.topics.list():
        known = lives.setdefault(
            str(topic.topic_id),
            # Made by one who was killed before it could say so: nothing before now is held to it.
            Creation(
                topic.name, str(topic.topic_id), TOPICS[topic.name].kind, time.monotonic(), False
            ),
        )
        known.is_last = True
    return list(lives.values())


def _gather(place: Place, history: History) -> None:
    for number in range(ROLES["producer"]):
        name = f"producer{number}"
        history.sends += sends_of(name, read_journal(place.journal_file(name)))
    for number in range(ROLES["sink"]):
        name = f"sink{number}"
        history.sends += tasks_of(name, read_journal(place.journal_file(name)))
    for number in range(ROLES["consumer"]):
        name = f"consumer{number}"
        history.consumptions += consumptions_of(name, read_journal(place.journal_file(name)))
    for number in range(ROLES["member"]):
        lines = list(read_journal(place.journal_file(f"member{number}")))
        reads = group_reads_of(lines)
        if place.gateways:
            reads = [replace(read, since_s=read.generation_id / 10_000) for read in reads]
        history.group_reads += reads
        history.group_commits += group_commits_of(lines)
    for number in range(ROLES["janitor"]):
        history.erasures += erasures_of(read_journal(place.journal_file(f"janitor{number}")))
    kinds = {creation.topic_id for creation in history.creations}
    for one in (*history.consumptions, *history.group_reads):
        if one.partition.topic_id not in kinds:  # made and dropped by one who could not say so
            history.creations.append(
                Creation("reborn", one.partition.topic_id, TOPICS["reborn"].kind, 0.0, False)
            )
            kinds.add(one.partition.topic_id)

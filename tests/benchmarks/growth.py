"""What grows when there is more of something: one curve a figure, over counts a decade apart.

Partitions of a topic, topics, segments in either tier, commits to a table, the size of a record,
producers that Redis remembers, consumers in a group and without one, and readers of one table. Each
count has a Redis or a table of its own, archived inline into a local folder. Few things are
repeated (three rounds at most; what is large once), since it is the slope that counts. Where both
work, the CPU time of this process and of Redis is measured beside the time.

`--write-readme` makes growth.md of the figures, with its charts and the simulation that begins
with them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import count
from multiprocessing.synchronize import Barrier
from threading import Thread
from uuid import uuid4

import redis

from lakelog import Lakelog, Topic, TopicPartition
from lakelog.hot import HotLog
from lakelog.values.config import GIB, MIB

from . import commits, hot, limits, many_files, many_segments, many_topics
from .bench import Bench, timed
from .consume import one_more
from .curves import CPU_HERE, CPU_OF_REDIS, Point
from .many_segments import TOGETHER
from .measures import BYTES, CORES, OURS, SECONDS, Row, Unit
from .meters import redis_cpu_s
from .processes import meet, phases_on_processes

PARTITIONS = (1, 10, 100, 1_000, 10_000)
TOPICS = (1, 10, 100, 1_000)
SEGMENTS = (100, 1_000, 10_000, 100_000)
COMMITS = (100, 1_000, 10_000, 100_000)
VALUE_BYTES = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
PRODUCERS = (1, 100, 10_000, 1_000_000)
CONSUMERS = (1, 5, 50, 500)
READERS = (1, 2, 4, 8)

OFTEN = 1_000  # what is smaller is measured in several rounds
VALUES_BYTES = 32 * MIB  # of each size
APPENDS_BYTES, APPENDS = 32 * MIB, 100  # of single appends of each size, at most
GROUP_PARTITIONS = 500
OF_A_CONNECTION = 20  # consumers, fewer than a process has connections to a server
IDLE_S = 3
INDEPENDENT_RECORDS = 20_000
COLD_RECORDS, SEEKS = 500_000, 50

#: By what was measured, and in what.
Figures = Mapping[tuple[str, Unit], tuple[float, ...]]
Round = Mapping[tuple[str, Unit], float]


def rows(bench: Bench) -> Iterator[Row]:
    for axis, counts, measured in (
        ("partitions", PARTITIONS, of_partitions),
        ("topics", TOPICS, of_topics),
        ("segments", SEGMENTS, of_segments),
        ("commits", COMMITS, of_commits),
        ("producers", PRODUCERS, of_producers),
        ("consumers", CONSUMERS, of_consumers),
        ("readers", READERS, of_readers),
    ):
        for at in scaled(bench, counts):
            yield from points(axis, at, measured(bench, at))
    for at in VALUE_BYTES:
        yield from points("bytes of a value", at, of_values(bench, at))


def scaled(bench: Bench, counts: tuple[int, ...]) -> list[int]:
    return sorted({bench.scaled(one) for one in counts})


def points(axis: str, at: int, found: Figures) -> Iterator[Row]:
    for (measure, unit), samples in found.items():
        yield Row(str(Point(axis, at, measure)), unit, {OURS: samples})


def several(bench: Bench, at: int, once: Callable[[], Round]) -> Figures:
    """Of what is small some rounds after one that warms up; of what is large one."""
    small = at < OFTEN
    return bench.repeated(once, bench.few if small else 1, warm=int(small))


class Meter:
    """Times calls, and how long this process and a Redis were on a CPU for them."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.found: dict[tuple[str, Unit], float] = {}

    def __call__(self, what: str, work: Callable[[], object]) -> None:
        server_s, own_s = redis_cpu_s(self._client), time.process_time()
        self.found[what, SECONDS] = timed(work)
        self.found[what + CPU_HERE, SECONDS] = time.process_time() - own_s
        self.found[what + CPU_OF_REDIS, SECONDS] = redis_cpu_s(self._client) - server_s


def of_partitions(bench: Bench, partitions: int) -> Figures:
    numbers = count()
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url, bench.new_folder(), engine="inline") as lake,
        server.client() as client,
    ):

        def once() -> Round:
            name, meter = f"wide-{next(numbers)}", Meter(client)
            meter("the topic made", lambda: lake.topics.create(name, partitions))

            def append() -> None:
                with lake.producer() as producer:
                    for number in range(partitions):
                        producer.send(name, b"v", partition=number)

            meter("a record to each", append)
            meter("a record of each consumed", lambda: consume_all(lake, name, partitions, 1))
            meter("a record of each archived", lambda: lake.archive(name))
            meter("archive, nothing to do", lambda: lake.archive(name))
            meter("where each ends", lambda: lake.log(name).offsets())
            meter("`status`", lambda: lake.status(name))
            lake.topics.delete(name)
            lake.purge(name)
            return meter.found

        return several(bench, partitions, once)


def consume_all(lake: Lakelog, name: str, partitions: int, records: int) -> None:
    """So many records of each partition, by a consumer without a group."""
    with lake.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(name, number) for number in range(partitions)])
        seen = 0
        while seen < partitions * records:
            seen += sum(batch.num_rows for batch in consumer.poll_arrow(10_000).values())


def of_topics(bench: Bench, topics: int) -> Figures:
    """Of 10 partitions each, in a process that connects and asks for the first time."""
    cold = str(bench.new_folder())
    with bench.redis({"appendonly": "no"}) as server:
        made_s = timed(lambda: many_topics.fill(server.url, cold, topics))

        def once() -> Round:
            found: dict[tuple[str, Unit], float] = {}
            for what in ("topics.list", "status", "metrics", "archive"):
                told = many_topics.asked(what, server.url, cold)
                for figure, said in (("", "time"), (" again", "time, again")):
                    found[f"`{what}`{figure}", SECONDS] = told[said]
                    cpu = told["CPU" + said.removeprefix("time")]
                    found[f"`{what}`{figure}{CPU_HERE}", SECONDS] = cpu
            return found

        made = {("made, filled and archived", SECONDS): (made_s,)}
        rounds = bench.few if topics < OFTEN // many_topics.PARTITIONS else 1
        return made | bench.repeated(once, rounds, warm=0)  # processes of their own need none


def of_segments(bench: Bench, segments: int) -> Figures:
    """Cold, a table whose segments have a file each; hot, of one partition."""
    root = str(bench.new_folder())
    files = max(many_files.TOPIC.partitions, segments)
    many_files.make(root, files)
    told = bench.repeated(lambda: many_files.asked("lakelog", root), bench.few, warm=0)
    found = {
        (f"cold: {what.removesuffix(': time')}", BYTES if "memory" in what else SECONDS): samples
        for what, samples in told.items()
        if not what.endswith("CPU")
    }
    hot_asked = scripts(bench, segments, producers=1)
    for (what, unit), samples in hot_asked.items():
        if many_segments.RECOVERY not in what and unit is SECONDS:  # these go by producers
            found[f"hot: {what}", unit] = samples
    return found


def of_producers(bench: Bench, producers: int) -> Figures:
    asked = scripts(bench, 100, producers)
    shown = (many_segments.APPEND, many_segments.RECOVERY, "a look for damage", "memory")
    return {of: samples for of, samples in asked.items() if any(one in of[0] for one in shown)}


def scripts(bench: Bench, segments: int, producers: int) -> Figures:
    """How long Redis is busy with each question about a partition."""
    conf = {"slowlog-log-slower-than": 0, "slowlog-max-len": 10_000, "appendonly": "no"}
    with (
        bench.redis(conf) as server,
        closing(HotLog.connect(server.url)) as log,
        server.client() as client,
    ):
        of_round = many_segments.Round(log, client, segments, producers)

        def once() -> Round:
            return {
                (what, SECONDS): seconds
                for (what, of), seconds in of_round().items()
                if of == TOGETHER and what != many_segments.ALL
            }

        asked = several(bench, max(segments, producers), once)
        return asked | {("memory of Redis", BYTES): (float(of_round.producers_bytes),)}


def of_commits(bench: Bench, made: int) -> Figures:
    table = commits.Table(Topic(f"commits-{made}", uuid4(), 1), bench.new_folder())
    table.make(made)
    calls = {
        "opening": commits.Table.open,
        "a look for news": commits.Table.look,
        "a commit": commits.Table.commit,
    }
    sides = {what: commits.median_of(call, table) for what, call in calls.items()}

    def once() -> Round:
        return {(what, SECONDS): side() or 0.0 for what, side in sides.items()}

    return bench.repeated(once, bench.few)


def of_values(bench: Bench, value_bytes: int) -> Figures:
    """A record of so many random bytes, in seconds on a CPU; and one append that is answered."""
    size_bytes = bench.scaled(VALUES_BYTES, value_bytes)
    records = size_bytes // value_bytes  # of a table at most, which matters to a small scale
    tables = [table.slice(0, records) for table in limits.made(value_bytes, size_bytes)]
    of_a_gib = value_bytes / GIB
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url, bench.new_folder(), engine="inline") as lake,
    ):

        def once() -> Round:
            told = limits.round_of(lake, server, tables)
            found: dict[tuple[str, Unit], float] = {}
            for way in limits.WAYS:
                redis_s, own_s = (told[way, who] * of_a_gib for who in ("Redis", "this process"))
                found[f"{way}, CPU of both", SECONDS] = redis_s + own_s
                found[f"{way}, CPU of both{CPU_HERE}", SECONDS] = own_s
                found[f"{way}, CPU of both{CPU_OF_REDIS}", SECONDS] = redis_s
            return found

        found = bench.repeated(once, bench.few)
        log, _, append = hot.appending(server.url, "single", bytes(value_bytes))
        calls = max(3, min(bench.scaled(APPENDS), APPENDS_BYTES // value_bytes))
        with closing(log):
            append()
            took = tuple(timed(append) for _ in range(calls))
        return found | {("one append, answered", SECONDS): (statistics.median(took),)}


def of_consumers(bench: Bench, consumers: int) -> Figures:
    """Threads of one process, which is what keeps them back: Redis's CPU is what they cost it."""
    partitions = bench.scaled(GROUP_PARTITIONS, consumers)
    with ExitStack() as stack:
        server = stack.enter_context(bench.redis({"appendonly": "no"}))
        lakes = [
            stack.enter_context(Lakelog.connect(server.url, bench.folder, engine="inline"))
            for _ in range(-(-consumers // OF_A_CONNECTION))
        ]
        lakes[0].topics.create("shared", partitions)
        client = stack.enter_context(server.client())
        numbers, meter = count(), Meter(client)

        def once() -> Round:
            group = f"group-{next(numbers)}"
            members = [
                lakes[number % len(lakes)].consumer("shared", group_id=group)
                for number in range(consumers)
            ]
            found: dict[tuple[str, Unit], float] = {}
            with ExitStack() as polling:
                began_s = time.perf_counter()
                last_s = one_more(polling, members, partitions)
                found["a group, from nobody to all", SECONDS] = time.perf_counter() - began_s
                found["a group, one more member", SECONDS] = last_s
                idle_s, redis_s = bench.scaled(IDLE_S, 1), redis_cpu_s(client)
                time.sleep(idle_s)
                used = (redis_cpu_s(client) - redis_s) / idle_s
                found["a group with nothing to read: Redis", CORES] = used
            return found

        grouped = bench.repeated(once, 1, warm=0)
        records = bench.scaled(INDEPENDENT_RECORDS, 100)
        lakes[0].topics.create("alone", 1)
        with lakes[0].producer() as producer:
            producer.send_batch("alone", next(limits.made(100, 1)).slice(0, records))
        readers = [
            Thread(target=consume_all, args=(lakes[number % len(lakes)], "alone", 1, records))
            for number in range(consumers)
        ]

        def read() -> None:
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()

        meter(f"each alone, {records:,} records of 100 bytes", read)
        return grouped | {of: (value,) for of, value in meter.found.items()}


def of_readers(bench: Bench, readers: int) -> Figures:
    """Processes that have a log's cold tier alone, all of which read at once."""
    records, root = bench.scaled(COLD_RECORDS, 1_000), str(bench.new_folder())
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url, root, engine="inline") as lake,
    ):
        lake.topics.create("read", 1)
        with lake.producer() as producer:
            for table in limits.made(100, 100 * records):
                producer.send_batch("read", table)
        end = lake.archive("read")[0].records
    all_s, sought_s = phases_on_processes(read, root, end, processes=readers, phases=2)
    return {
        (f"all of {end:,} records by each", SECONDS): (all_s,),
        ("a record at an offset, each", SECONDS): (sought_s / SEEKS,),
    }


def read(barrier: Barrier, number: int, root: str, end: int) -> None:
    """All records; then single ones, here and there."""
    with Lakelog.connect(None, root, engine="inline") as lake:
        log = lake.log("read")
        log.read(0, 0, 1).to_arrow()
        meet(barrier)
        found = log.read(0, 0).to_arrow().num_rows
        meet(barrier)
        for turn in range(SEEKS):
            offset = (turn * 7919 + number * 104_729) % end
            log.read(0, offset, offset + 1).to_arrow()
        meet(barrier)
    if found != end:
        raise RuntimeError(f"reader {number} read {found} records of {end}")

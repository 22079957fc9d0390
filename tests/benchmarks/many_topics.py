"""What a look at very many topics takes: status, metrics, a page, an archive with nothing to do.

1,000 topics of 10 partitions with three records each, archived inline into a local folder. Each is
asked by a process of its own that has connected and no more: `lake.topics.list()`,
`lake.status()`, `lake.metrics()`, `lake.archive()` with nothing to archive, and an explorer of one
of the topics up to its first rows. Each is asked twice, since a process that goes on looking has
its tables open. CPU is the process's own. There are three rounds at most.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from lakelog import Lakelog

from .bench import Bench
from .measures import OURS, SECONDS, Goal, Row

TOPICS, PARTITIONS, RECORDS = 1_000, 10, 3  # of each topic, of each partition
GOAL_S = 2.0
WHATS = ("topics.list", "status", "metrics", "archive", "explore")
FIGURES = ("time", "CPU", "time, again", "CPU, again")

#: Prints wall and CPU seconds, of the first time and of the second.
ASK = """
import sys, time
from threading import Event
from lakelog import Lakelog
what, url, cold = sys.argv[1:]

def first_page(lake):
    explorer = lake.explore(lake.topics.list()[0].name)
    table, painted = explorer._screen.ui.table, Event()
    table.observe(lambda _: painted.set(), names="value")
    assert table.value or painted.wait(600)
    return explorer

ASKS = {
    "topics.list": lambda lake: lake.topics.list(),
    "status": lambda lake: lake.status(),
    "metrics": lambda lake: lake.metrics(),
    "archive": lambda lake: lake.archive(),
    "explore": first_page,
}
with Lakelog.connect(url, cold, engine="inline") as lake:
    lake.hot.now_ms()
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        found = ASKS[what](lake)
        print(time.perf_counter() - wall, time.process_time() - cpu)
        if what == "explore":
            found.wait()
            found.close()
"""


def rows(bench: Bench) -> Iterator[Row]:
    topics, cold = bench.scaled(TOPICS, 3), str(bench.new_folder())
    with bench.redis() as server:
        fill(server.url, cold, topics)
        for what in WHATS:
            found = bench.repeated(lambda w=what: asked(w, server.url, cold), bench.few)
            call = "the explorer's first page" if what == "explore" else f"`lake.{what}()`"
            for figure in FIGURES:
                goals = (Goal(GOAL_S),) if "CPU" in figure else ()
                of = f"{topics:,} topics of {PARTITIONS} partitions: {call}, {figure}"
                yield Row(of, SECONDS, {OURS: found[figure]}, goals)


def asked(what: str, url: str, cold: str) -> dict[str, float]:
    command = [sys.executable, "-c", ASK, what, url, cold]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(zip(FIGURES, map(float, said.split()), strict=True))


def fill(url: str, cold: str, topics: int) -> None:
    with Lakelog.connect(url, cold, engine="inline") as lake:
        for number in range(topics):
            lake.topics.create(f"t{number}", PARTITIONS)
        with lake.producer() as producer:
            for number in range(topics):
                for partition in range(PARTITIONS):
                    for record in range(RECORDS):
                        producer.send(f"t{number}", b"%d" % record, partition=partition)
        lake.archive()

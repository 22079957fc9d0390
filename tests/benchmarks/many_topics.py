"""What a look at very many topics takes: status, metrics, a page, an archive with nothing to do.

    python tests/benchmarks/many_topics.py

Makes 1,000 topics of 10 partitions with three records each, archives them inline into a local
folder, and asks, each in a process of its own that has connected and no more: `lake.topics.list()`,
`lake.status()`, `lake.metrics()`, `lake.archive()` with nothing to archive, and an explorer of one
of the topics up to its first rows. Each is asked twice, since a process that goes on looking has
its tables open. What counts is the median of some rounds; CPU is the process's own.

Prints one Markdown table. Takes a few minutes, most of them to make the topics. With --redis and
--cold it asks a log that is there.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from lakelog import Lakelog
from lakelog.testing.servers import RedisServer

RECORDS = 3  # a partition
WHATS = ("topics.list", "status", "metrics", "archive", "explore")

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


def fill(url: str, cold: str, topics: int, partitions: int) -> None:
    with Lakelog.connect(url, cold, engine="inline") as lake:
        for number in range(topics):
            lake.topics.create(f"t{number}", partitions)
        with lake.producer() as producer:
            for number in range(topics):
                for partition in range(partitions):
                    for record in range(RECORDS):
                        producer.send(f"t{number}", b"%d" % record, partition=partition)
        lake.archive()


def measure(url: str, cold: str, rounds: int) -> None:
    print("| what | first: wall | CPU | again: wall | CPU |\n|---|---:|---:|---:|---:|")
    for what in WHATS:
        runs = []
        for _ in range(rounds):
            command = [sys.executable, "-c", ASK, what, url, cold]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            runs.append([float(word) for word in said.split()])
        cells = (f"{statistics.median(one):.2f} s" for one in zip(*runs, strict=True))
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--redis", help="with --cold: a log that is there")
    parser.add_argument("--cold")
    given = parser.parse_args()
    if given.redis:
        measure(given.redis, given.cold, given.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis").start()
        try:
            cold = str(Path(folder) / "cold")
            fill(server.url, cold, given.topics, given.partitions)
            measure(server.url, cold, given.rounds)
        finally:
            server.kill()


if __name__ == "__main__":
    main()

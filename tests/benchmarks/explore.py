"""How long the explorer takes from a wish to the page it has drawn.

Steps over random places of a log of 1,000,000 records of 200 bytes: 800,000 in a Delta table in a
local folder, in some 30 files, the rest in Redis. Beside them: what a search reads a second, how
long a picture of 100,000 files takes, how long it is from a call of `explore` to the first HTML
with rows (in a kernel of its own that has connected and no more), and what a topic of very many
partitions takes, each asked once.
"""

from __future__ import annotations

import io
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelog import Lakelog
from lakelog.cli.main import main as lakelog_command
from lakelog.cold.segment import COLUMNS, SegmentIndex
from lakelog.cold.table import ColdSnapshot
from lakelog.explore.histogram import edges, histogram, whole
from lakelog.explore.picture import STEPS
from lakelog.explore.picture_html import picture_html
from lakelog.explore.record_times import groups_of
from lakelog.read.tiers import SegmentedLook
from lakelog.values.config import HOUR_MS
from lakelog.values.offsets import HotSegments, LogOffsets

from .bench import Bench, Side, rates, timed
from .measures import OURS, RECORDS_PER_S, SECONDS, Goal, Row, quantile

CALLS = 40  # of each step, a round
COLD, HOT = 800_000, 200_000
BATCH = 10_000
EPOCH_MS = 1_700_000_000_000
STEP_S = {"hot": 0.050, "cold": 0.150}
FILES, PICTURE_S = 100_000, 0.300
PAINT_S = 0.500
WIDE, WIDE_RECORDS, WIDE_S = 10_000, 20, 2.0  # partitions, and records of each
SEARCHES = {
    "a key": 'key = "nobody"',
    "a header": "header.nothing exists",
    "a text": "nowhere",
    "a member that no value has": "value.nothing exists",
    "a member that each value has": "value.sensor = -1",
}

#: From the call to the first HTML with rows, in a kernel that has connected and no more.
PAINT = """
import sys, time
from threading import Event
from ipykernel.ipkernel import IPythonKernel
from lakelog import Lakelog
with Lakelog.connect(sys.argv[1], sys.argv[2], engine="inline") as lakelog:
    lakelog.topics.list()
    for _ in range(2):
        began = time.perf_counter()
        explorer = lakelog.explore("readings")
        table, painted = explorer._screen.ui.table, Event()
        table.observe(lambda _: painted.set(), names="value")
        if not table.value:
            assert painted.wait(60)
        print(time.perf_counter() - began)
        explorer.wait()
        explorer.close()
"""


def rows(bench: Bench) -> Iterator[Row]:
    folder = bench.new_folder()
    with (
        bench.redis() as server,
        Lakelog.connect(server.url, folder, engine="inline") as lakelog,
    ):
        filled = Filled(bench.scaled(COLD, 800), bench.scaled(HOT, 400))
        filled.fill(lakelog)
        explorer = lakelog.explore("readings")
        yield from stepping(bench, filled, explorer)
        yield from searching(bench, filled, explorer)
        explorer.close()
        files = bench.scaled(FILES // 2, 10) * 2
        drawn = bench.interleaved({OURS: drawing(files)})
        what = f"explorer: its picture of time of {files:,} cold files, from indexes to HTML"
        yield Row(what, SECONDS, drawn, (Goal(PICTURE_S),))
        painted = bench.repeated(lambda: painted_s(server.url, folder))
        for which, samples in painted.items():
            what = f"explorer: from `explore()` to the first rows, {which}"
            yield Row(what, SECONDS, {OURS: samples}, (Goal(PAINT_S),))
        yield from wide(lakelog, server.url, bench.scaled(WIDE, 80))


# -- steps and searches ------------------------------------------------------------------------


@dataclass(frozen=True)
class Filled:
    """A topic ``readings`` of one partition, so many records of which are in each tier."""

    cold: int
    hot: int

    def fill(self, lakelog: Lakelog) -> None:
        settings = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": 4 << 20}
        lakelog.topics.create("readings", 1, settings)
        chance = random.Random(0)
        self._append(lakelog, 0, self.cold, chance)
        lakelog.archive("readings")
        self._append(lakelog, self.cold, self.cold + self.hot, chance)

    def _append(self, lakelog: Lakelog, first: int, end: int, chance: random.Random) -> None:
        with lakelog.producer() as producer:
            for start in range(first, end, BATCH):
                offsets = range(start, min(end, start + BATCH))
                values = [
                    b'{"sensor": %d, "celsius": %d, "note": "%s"}'
                    % (offset % 1000, chance.randrange(40), chance.randbytes(60).hex().encode())
                    for offset in offsets
                ]
                table = pa.table(
                    {
                        "key": pa.array([b"sensor %d" % (offset % 1000) for offset in offsets]),
                        "value": pa.array(values, pa.binary()),
                        "timestamp_ms": pa.array([EPOCH_MS + offset for offset in offsets]),
                    }
                )
                producer.send_batch("readings", table, partition=0)

    def steps(self, explorer: Any) -> Iterator[tuple[str, str, int | None, Callable[[], object]]]:
        """What a step is, its tier, where it begins if that matters, and the step."""
        chance = random.Random(1)

        def offset(tier: str) -> int:
            if tier == "hot":
                return chance.randrange(self.cold, self.cold + self.hot - 100)
            return chance.randrange(100, self.cold - 100)

        for tier, middle in (("hot", self.cold + self.hot // 2), ("cold", self.cold // 2)):
            yield "to an offset", tier, None, lambda t=tier: explorer.seek(offset(t))
            yield "to a time", tier, None, lambda t=tier: explorer.seek(f"@{EPOCH_MS + offset(t)}")
            yield "a page forward", tier, middle, explorer.forward
            yield "a page back", tier, middle, explorer.back
        yield "to the end", "hot", None, lambda: explorer.seek("latest")


def stepping(bench: Bench, filled: Filled, explorer: Any) -> Iterator[Row]:
    for what, tier, begin, step in filled.steps(explorer):

        def once(begin: int | None = begin, step: Callable[[], object] = step) -> dict[str, float]:
            if begin is not None:
                explorer.seek(begin)
            taken = [timed(step) for _ in range(CALLS)]
            return {"p50": statistics.median(taken), "p95": quantile(taken, 0.95)}

        for share, samples in bench.repeated(once).items():
            goals = (Goal(STEP_S[tier]),) if share == "p95" else ()
            yield Row(f"explorer: {what}, {tier}, {share}", SECONDS, {OURS: samples}, goals)


def searching(bench: Bench, filled: Filled, explorer: Any) -> Iterator[Row]:
    def search(match: str) -> Side:
        return lambda: timed(lambda: explorer.search(match))

    for what, match in SEARCHES.items():
        taken = bench.interleaved({OURS: search(match)})
        found = rates(taken, filled.cold + filled.hot)
        yield Row(f"explorer: a search for {what}, nothing found", RECORDS_PER_S, found)
    explorer.search()


# -- pictures ----------------------------------------------------------------------------------


def painted_s(url: str, folder: Path) -> dict[str, float]:
    """Seconds to the first rows, of the first explorer of a process and of its second."""
    command = [sys.executable, "-c", PAINT, url, str(folder)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    first_s, again_s = map(float, said.split())
    return {"in a new kernel": first_s, "again": again_s}


def drawing(files: int) -> Callable[[], None]:
    """From the tiers' indexes to the drawn picture of a topic of many segments."""
    half = files // 2
    number = np.arange(files)
    within = number % half
    start = within * 1000
    columns = {
        "partition": number // half,
        "segment": start,
        "path": [f"partition={one // half}/{one}.parquet" for one in number.tolist()],
        "size_bytes": np.full(files, 1 << 20),
        "records": np.full(files, 1000),
        "start_offset": start,
        "end_offset": start + 1000,
        "min_timestamp_ms": EPOCH_MS + within * HOUR_MS,
        "max_timestamp_ms": EPOCH_MS + (within + 1) * HOUR_MS,
        "modified_ms": np.full(files, EPOCH_MS),
        "first": start,
        "last": start + 999,
        "ours": np.full(files, True),
    }
    index = SegmentIndex(pa.table(columns).cast(COLUMNS))
    end = half * 1000
    offsets = {n: LogOffsets(0, end, end, end) for n in (0, 1)}
    hot = {n: HotSegments(end, end, -1, 0) for n in (0, 1)}
    look = SegmentedLook(offsets, ColdSnapshot(files=index), hot)

    def draw() -> None:
        groups = groups_of(look)
        window = whole(groups)
        assert window is not None
        picture_html(histogram(groups, edges(window, STEPS)), [], timezone.utc, None)

    return draw


# -- very many partitions ----------------------------------------------------------------------


def wide(lakelog: Lakelog, url: str, partitions: int) -> Iterator[Row]:
    lakelog.topics.create("wide", partitions, {"retention.ms": -1, "remote.storage.enable": False})
    # The faster a producer is, the fewer records wait for each other: those of a partition do here.
    with lakelog.producer(linger_ms=60_000) as producer:
        for number in range(WIDE_RECORDS):
            for partition in range(partitions):
                at_ms = EPOCH_MS + 1000 * number + partition % 1000
                producer.send("wide", b"%d" % number, partition=partition, timestamp_ms=at_ms)

    def described() -> None:
        with redirect_stdout(io.StringIO()):
            if lakelog_command(["--redis", url, "topics", "describe", "wide"]):
                raise RuntimeError("`topics describe` failed")

    explorer = lakelog.explore("readings")
    explorer.wait()
    middle = f"@{EPOCH_MS + 500 * WIDE_RECORDS}"
    steps: list[tuple[str, Callable[[], object]]] = [
        ("the explorer's first page", lambda: explorer.choose("wide")),
        ("the explorer's search by time", lambda: explorer.search(f'time >= "{middle}"')),
        ("the explorer to a time", lambda: explorer.seek(middle)),
        ("the explorer to the end", lambda: explorer.seek("latest")),
        ("`topics describe`", described),
    ]
    for what, step in steps:
        cpu_s = time.process_time()
        took_s = timed(step)
        cpu_s = time.process_time() - cpu_s
        of = f"a topic of {partitions:,} partitions in Redis: {what}"
        yield Row(of, SECONDS, {OURS: (took_s,)}, (Goal(WIDE_S),))
        yield Row(f"{of}, CPU", SECONDS, {OURS: (cpu_s,)})
    explorer.close()

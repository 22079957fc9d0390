"""What a benchmark is given: rounds, a place, servers, and who else there is to be measured."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support.servers import RedisServer

from .kafka_peer import KafkaPeer
from .local_spark import LocalSpark
from .measures import OURS

Side = Callable[[], float | None]
Name = TypeVar("Name")

#: Rounds of what takes minutes each.
FEW = 3

#: As the settings that lakelog recommends for a log that is not lost: what was answered is on disk
#: within a second. Kafka's broker leaves it to the page cache.
DURABLE = {"appendonly": "yes", "appendfsync": "everysec"}


@dataclass
class Bench:
    """The options of a run.

    Args:
        folder: where everything lies; removed afterwards.
        rounds: how often each side is measured, after one round that warms it up.
        scale: of all counts; 1.0 is what goals are meant for.
        kafka: a broker to be measured beside, or none.
        spark: of the whole run.
        failed: the sides that failed, in words: they are not measured.
    """

    folder: Path
    spark: LocalSpark
    rounds: int = 5
    scale: float = 1.0
    kafka: KafkaPeer | None = None
    failed: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    @property
    def few(self) -> int:
        """Rounds of what takes long: `FEW`, or as many as were asked for if that is less."""
        return min(FEW, self.rounds)

    def scaled(self, count: int, least: int = 1) -> int:
        return max(least, round(count * self.scale))

    def new_folder(self) -> Path:
        made = self.folder / str(next(self._numbers))
        made.mkdir(parents=True)
        return made

    @contextmanager
    def redis(self, conf: Mapping[str, Any] | None = None) -> Iterator[RedisServer]:
        """A server of this benchmark's, ended with the context."""
        server = RedisServer(self.new_folder(), {**DURABLE, **(conf or {})})
        try:
            yield server.start()
        finally:
            server.kill(at_once=True)

    def interleaved(
        self, sides: Mapping[str, Side], rounds: int | None = None, warm: int = 1
    ) -> dict[str, tuple[float, ...]]:
        """Each side's figures, in rounds in which they take turns.

        A side that returns a number has measured itself; of one that returns None the seconds
        count. Every second round goes through them backwards, so that none always comes after the
        same neighbour. Before, not meanwhile, garbage is collected, and what others have written
        goes to the disk. The first `warm` rounds do not count. A side other than `OURS` that fails
        ends nobody's run: it is left out, and told of in `failed`.
        """
        rounds = self.rounds if rounds is None else rounds
        found: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(warm + rounds):
            order = [each for each in sides.items() if each[0] in found]
            for name, side in order if turn % 2 else reversed(order):
                gc.collect()
                os.sync()
                started = time.perf_counter()
                try:
                    value = side()
                except Exception as error:
                    if name == OURS:
                        raise
                    traceback.print_exc(file=sys.stderr)
                    self.failed.append(f"{name}: {in_short(error)}")
                    del found[name]
                    continue
                taken = time.perf_counter() - started if value is None else value
                if turn >= warm:
                    found[name].append(taken)
        return {name: tuple(values) for name, values in found.items()}

    def repeated(
        self, once: Callable[[], Mapping[Name, float]], rounds: int | None = None, warm: int = 1
    ) -> dict[Name, tuple[float, ...]]:
        """What each of some rounds has measured by itself, after `warm` that do not count."""
        found: dict[Name, list[float]] = {}
        for turn in range(warm + (self.rounds if rounds is None else rounds)):
            gc.collect()
            for name, value in once().items():
                if turn >= warm:
                    found.setdefault(name, []).append(value)
        return {name: tuple(values) for name, values in found.items()}


def in_short(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def timed(work: Callable[[], object]) -> float:
    """The seconds that it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def rates(samples: Mapping[str, tuple[float, ...]], count: int) -> dict[str, tuple[float, ...]]:
    """Of what was done so many times in these seconds, how many a second."""
    return {side: tuple(count / seconds for seconds in values) for side, values in samples.items()}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """What Spark still writes while it is removed does not matter."""
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)

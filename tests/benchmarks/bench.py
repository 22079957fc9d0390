"""What a benchmark is given: rounds, a place, servers, and who else there is to be measured."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelog.testing.servers import RedisServer

from .kafka_peer import KafkaPeer

Side = Callable[[], float | None]

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
    """

    folder: Path
    rounds: int = 5
    scale: float = 1.0
    kafka: KafkaPeer | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

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
            server.kill()

    def interleaved(
        self, sides: Mapping[str, Side], rounds: int | None = None
    ) -> dict[str, tuple[float, ...]]:
        """Each side's figures, in rounds in which they take turns.

        A side that returns a number has measured itself; of one that returns None the seconds
        count. Every second round goes through them backwards, so that none always comes after the
        same neighbour. Garbage is collected before, not meanwhile.
        """
        rounds = self.rounds if rounds is None else rounds
        found: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(rounds + 1):
            order = list(sides.items())
            for name, side in order if turn % 2 else reversed(order):
                gc.collect()
                started = time.perf_counter()
                value = side()
                taken = time.perf_counter() - started if value is None else value
                if turn:  # the first one warms up
                    found[name].append(taken)
        return {name: tuple(values) for name, values in found.items()}


def rates(samples: Mapping[str, tuple[float, ...]], count: int) -> dict[str, tuple[float, ...]]:
    """Of what was done so many times in these seconds, how many a second."""
    return {side: tuple(count / seconds for seconds in values) for side, values in samples.items()}


@contextmanager
def bench(**options: Any) -> Iterator[Bench]:
    """One in a temporary folder."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakelog-bench-"))
        yield Bench(Path(folder), **options)

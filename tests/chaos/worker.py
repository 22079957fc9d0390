"""A process of a round: ``python -m tests.chaos.worker ROLE NAME FOLDER``.

It ends with its harness, whatever becomes of that: its standard input is a pipe that nobody else
holds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lakelog.base import failpoints
from lakelog.cli.stop_signals import on_stop_signal
from lakelog.engines.engine import InlineEngine
from lakelog.errors import LakelogError
from lakelog.lakelog import Lakelog
from lakelog.place import LogPlace

from .journal import Journal

#: How likely a process stands still, or dies, at each place between two effects that it comes to.
PAUSE_AT_FAILPOINT = 0.02
DIE_AT_FAILPOINT = 0.005

_PLACE_FILE = "place.json"


@dataclass(frozen=True, slots=True)
class Place:
    """What a process must know to take part in a round."""

    redis_url: str
    cold: str
    storage_options: dict[str, str] | None
    clock_file: str | None
    seed: int
    folder: str
    acks: dict[str, str] = field(default_factory=dict)  # by producer
    durable: tuple[str, ...] = ()  # acks that promise more than any act of the round can take
    spark_conf: dict[str, str] | None = None  # of a Spark of one's own; None: nobody has one
    tables_at: str | None = None  # where tables by name lie, if the catalog tells Spark alone
    gateways: dict[str, str] = field(default_factory=dict)  # by name: where it listens
    kafka_topics: tuple[str, ...] = ()  # whose batches are kept as clients send them

    def save(self) -> None:
        (Path(self.folder) / _PLACE_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Place:
        return cls(**json.loads((folder / _PLACE_FILE).read_text()))

    def journal_file(self, name: str) -> Path:
        return Path(self.folder) / "journals" / f"{name}.jsonl"

    def connect(self) -> Lakelog:
        place = LogPlace.of(
            self.redis_url,
            self.cold,
            storage_options=self.storage_options,
            tables_at=self.tables_at,
        )
        clock = ShiftedClock(Path(self.clock_file)) if self.clock_file else None
        return Lakelog(place, InlineEngine(), clock=clock)

    def start_own_spark(self) -> None:
        """For the rest of this process, instead of the one that the others share."""
        from lakelog.spark import session

        for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):  # pyspark sets the second
            os.environ.pop(name, None)
        on_s3 = any(".s3a." in name for name in self.spark_conf or ())
        session("chaos", cores=1, conf=self.spark_conf, object_stores=["s3"] if on_s3 else [])


class ShiftedClock:
    """The machine's clock and so many milliseconds as a file says, for all that share the file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self._file.read_text() or 0)

    def shift(self, milliseconds: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(milliseconds))
        new.replace(self._file)


class Process:
    """What all roles share: a place, a journal, a draw of their own, and when to end."""

    def __init__(self, name: str, folder: Path, *, listens: bool = True) -> None:
        self.name = name
        self.place = Place.load(folder)
        self.journal = Journal(self.place.journal_file(name))
        self.session = time.monotonic_ns() // 1_000_000  # grows from one to the next
        self.draws = random.Random(f"{self.place.seed} {name} {_starts(folder, name)}")
        self.stop = threading.Event()  # end in order: nothing more will happen
        self.on_order: Callable[[str], None] | None = None
        if listens:
            on_stop_signal(self.stop.set)
            threading.Thread(target=self._listen, daemon=True).start()

    def connect(self) -> Lakelog:
        """The log, as soon as its servers answer."""
        while True:
            try:
                return self.place.connect()
            except LakelogError as error:
                if self.stop.is_set():
                    raise
                self.journal.write("waits", str(error)[:300])
                self.stop.wait(0.3)

    def _listen(self) -> None:
        for line in sys.stdin:
            if self.on_order is not None:
                self.on_order(line.strip())
        os._exit(1)  # the harness is gone


def _starts(folder: Path, name: str) -> int:
    """How often the process was started before, so that each start draws something else."""
    file = folder / "journals" / f"{name}.starts"
    count = len(file.read_text()) if file.exists() else 0
    with file.open("a") as starts:
        starts.write("x")
    return count


@contextlib.contextmanager
def hurt_at_failpoints(process: Process) -> Iterator[None]:
    """Stands still (until the harness has it go on) or dies, now and then, between two effects."""
    lock = threading.Lock()

    def hurt() -> None:
        with lock:
            drawn = process.draws.random()
        if drawn < DIE_AT_FAILPOINT:
            process.journal.write("dies")
            os.kill(os.getpid(), signal.SIGKILL)
        elif drawn < DIE_AT_FAILPOINT + PAUSE_AT_FAILPOINT and not process.stop.is_set():
            process.journal.write("stands still")
            os.kill(os.getpid(), signal.SIGSTOP)

    with contextlib.ExitStack() as armed:
        for name in failpoints.NAMES:
            armed.enter_context(failpoints.armed(name, hurt))
        yield


def main(role: str, name: str, folder: str) -> int:
    from . import consuming, grouping, kafka_clients, keeping, producing, sinking, streaming

    roles: dict[str, Callable[[Process], None]] = {
        "producer": producing.produce,
        "consumer": consuming.consume,
        "member": grouping.take_part,
        "archiver": keeping.archive,
        "janitor": keeping.keep,
        "sink": sinking.sink,
        "stream": streaming.stream,
    }
    process = Process(name, Path(folder))
    if process.place.gateways:
        roles["gateway"] = kafka_clients.serve
        roles["producer"] = kafka_clients.produce
        roles["member"] = kafka_clients.take_part
    try:
        roles[role](process)
    except BaseException as error:
        process.journal.write("crash", f"{type(error).__name__}: {error}"[:500])
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    # An archiver that was told to end amid an outage leaves a thread in the store's library, which
    # must not be taken away from under it.
    os._exit(code)

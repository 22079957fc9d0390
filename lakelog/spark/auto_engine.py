"""Engines by their names, and the one that is used unless one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from ..engines.engine import INLINE, SPARK, Choice, Engine, InlineEngine, chosen, size_of
from ..engines.spark import SparkEngine
from ..errors import InvalidArgumentError, MissingExtraError, SparkUnavailableError
from .open_session import is_given, open_session, session_there

T = TypeVar("T")
R = TypeVar("R")

AUTO = "auto"

#: Work on so many stored bytes is worth a Spark's start, which takes 15 to 30 s: copying 20 million
#: records of 100 bytes takes this process as long.
START_BYTES = 2 * 2**30

#: A Spark of this process: 2 GiB of heap (`spark.driver.memory`), Java's own half of a GiB, and a
#: Python worker of about 310 MiB on each of two cores.
SPARK_BYTES = 2 * 2**30 + 2**29 + 2 * 310 * 2**20


def choose_engine(engine: Engine | str | None = None, object_stores: Sequence[str] = ()) -> Engine:
    """An engine by its name: ``auto``, ``spark`` or ``inline``; None for ``auto``.

    Args:
        object_stores: what else a Spark that is started for it shall open; see `open_session`.

    Raises:
        InvalidArgumentError: another name.
    """
    if engine is None or engine in (AUTO, SPARK):
        spark = SparkEngine(partial(open_session, object_stores=object_stores))
        return spark if engine == SPARK else AutoEngine(spark)
    if engine == INLINE:
        return InlineEngine()
    if isinstance(engine, str):
        raise InvalidArgumentError(f"engine={engine!r} is not 'auto', 'spark' or 'inline'")
    return engine


class AutoEngine:
    """Runs tasks on the Spark that is running; else here, unless they are worth its start.

    Thread-safe.

    Args:
        spark: runs those that Spark is chosen for.
    """

    def __init__(self, spark: SparkEngine) -> None:
        self._here = InlineEngine()
        self._spark = spark
        self._failed: str | None = None  # why a start of Spark failed

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `Engine.map`. Where Spark cannot be started, the tasks run here."""
        if not tasks:
            return iter(())
        choice = self._choose(size_of(tasks))
        if choice.engine == SPARK:
            try:
                found = self._spark.run(function, tasks)
            except (MissingExtraError, SparkUnavailableError) as error:
                self._failed = _first_line(error)
                choice = Choice(INLINE, f"Spark could not be started: {self._failed}")
            else:
                chosen(choice)
                return found
        chosen(choice)
        return self._here.run(function, tasks)

    def cancel(self) -> None:
        """Cancels what runs on Spark now; its callers get an error."""
        self._spark.cancel()

    def _choose(self, size_bytes: int) -> Choice:
        if is_running():
            return Choice(SPARK, "it is running")
        work = f"{_size(size_bytes)} of records"
        if size_bytes < START_BYTES:
            return Choice(INLINE, f"{work}; Spark is started from {_size(START_BYTES)} on")
        if missing := self._failed or why_no_spark():
            return Choice(INLINE, f"{work}, but Spark cannot be started: {missing}")
        return Choice(SPARK, work)


def is_running() -> bool:
    """Whether the process has a Spark session, or the platform gives it one."""
    return session_there() is not None or is_given()


def why_no_spark() -> str | None:
    """Why no Spark can be started here, in a line; None: no reason is known."""
    from ..hot.embedded.java import java_home
    from .delta_jars import PIP_COMMAND

    if find_spec("pyspark") is None or find_spec("delta") is None:
        return f"it is not installed ({PIP_COMMAND})"
    try:
        java_home()
    except MissingExtraError as error:
        return _first_line(error)
    free_bytes = free_memory_bytes()
    if free_bytes is not None and free_bytes < SPARK_BYTES:
        return f"it takes {_size(SPARK_BYTES)} of memory, and {_size(free_bytes)} is free"
    return None


def free_memory_bytes(
    meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Memory that this machine, or its container, has left for another process; None: unknown."""
    found = [_available_bytes(meminfo), _cgroup_bytes(cgroup)]
    return min((one for one in found if one is not None), default=None)


def _available_bytes(meminfo: Path) -> int | None:
    try:
        for line in meminfo.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):  # not Linux
        pass
    return None


def _cgroup_bytes(cgroup: Path) -> int | None:
    """What the container's limit leaves; what caches files and is not in use counts as free."""
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        if limit == "max":
            return None
        taken = int((cgroup / "memory.current").read_text())
        counts = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
        return max(0, int(limit) - taken + int(counts.get("inactive_file", 0)))
    except (OSError, ValueError):  # no cgroup of version 2, or none with a limit
        return None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"

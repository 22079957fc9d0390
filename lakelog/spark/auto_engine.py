"""The engine that is used unless one is named: this process, and Spark where it pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from ..engines.chosen import chosen, whole_work
from ..engines.engine import InlineEngine
from ..errors import MissingExtraError, SparkUnavailableError
from .lazy_engine import LazySparkEngine
from .open_session import is_given, session_there

if TYPE_CHECKING:
    from ..engines.choice import Choice, SparkFacts, Work


T = TypeVar("T")
R = TypeVar("R")


class AutoEngine:
    """Runs tasks here or on Spark, as `choice.choose` says each time. Thread-safe.

    Args:
        spark: runs those that Spark is chosen for.
    """

    def __init__(self, spark: LazySparkEngine) -> None:
        self._here = InlineEngine()
        self._spark = spark
        self._failed: str | None = None  # why a start of Spark failed

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `Engine.map`. Where Spark cannot be started, the tasks run here."""
        from ..engines.choice import INLINE, SPARK, Choice, Work

        if not tasks:
            return iter(())
        works = Work.of(tasks)
        choice = self._choose(works)
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

    def _choose(self, works: Sequence[Work]) -> Choice:
        from ..engines.choice import SPARK, choose

        facts, whole = spark_facts(), whole_work()
        choice = choose(works, facts, whole)
        if choice.engine == SPARK and not facts.is_up:  # only now is Java worth a look
            missing = self._failed or why_no_spark()
            choice = choose(works, replace(facts, missing=missing), whole)
        return choice


def spark_facts() -> SparkFacts:
    """What is known of Spark here without starting anything."""
    from ..engines.choice import SparkFacts
    from ..engines.spark import CORES_UNKNOWN, cores

    there = session_there()
    if there is not None:
        return SparkFacts(cores(there), is_up=True)
    if is_given():
        return SparkFacts(CORES_UNKNOWN, is_up=True)
    return SparkFacts(os.cpu_count() or 1, free_bytes=free_memory_bytes())


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

"""Which engine runs the tasks; Spark starts only when there is something to run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TypeVar

from ..engines.engine import Engine, InlineEngine
from ..errors import InvalidArgumentError

T = TypeVar("T")
R = TypeVar("R")


def choose_engine(engine: Engine | str | None = None, object_stores: Sequence[str] = ()) -> Engine:
    """An engine by its name: ``"spark"``, ``"inline"``; None for Spark where it is installed.

    Args:
        object_stores: what else a Spark that is started for it shall open; see `session`.

    Raises:
        InvalidArgumentError: another name.
    """
    if engine is None:
        engine = "spark" if find_spec("pyspark") else "inline"
    if engine == "spark":
        return LazySparkEngine(object_stores)
    if engine == "inline":
        return InlineEngine()
    if isinstance(engine, str):
        raise InvalidArgumentError(f"engine={engine!r} is not 'spark' or 'inline'")
    return engine


class LazySparkEngine:
    """A `SparkEngine` over the session there is, or over a local one that is started when needed.

    Thread-safe.
    """

    def __init__(self, object_stores: Sequence[str] = ()) -> None:
        self._object_stores = object_stores
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `Engine.map`."""
        if not tasks:
            return iter(())
        with self._lock:
            if self._engine is None:
                from ..engines.spark import SparkEngine
                from .session import session

                self._engine = SparkEngine(session(object_stores=self._object_stores))
        return self._engine.map(function, tasks)

"""Spark as an engine that starts only when there is something to run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..engines.choice import SPARK, Choice
from ..engines.chosen import chosen

if TYPE_CHECKING:
    from ..engines.spark import SparkEngine

T = TypeVar("T")
R = TypeVar("R")

_ASKED = Choice(SPARK, "as asked")


class LazySparkEngine:
    """A `SparkEngine` over the session there is, or over a local one that is started when needed.

    Thread-safe.

    Args:
        object_stores: what else a Spark that is started for it shall open; see `open_session`.
    """

    def __init__(self, object_stores: Sequence[str] = ()) -> None:
        self._object_stores = object_stores
        self._engine: SparkEngine | None = None
        self._lock = threading.Lock()

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `Engine.map`."""
        if tasks:
            chosen(_ASKED)
        return self.run(function, tasks)

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """As `map`, for who has said already why it runs on Spark.

        Raises:
            MissingExtraError, SparkUnavailableError: see `open_session`.
        """
        if not tasks:
            return iter(())
        with self._lock:
            if self._engine is None:
                from ..engines.spark import SparkEngine
                from .open_session import open_session

                self._engine = SparkEngine(open_session(object_stores=self._object_stores))
        return self._engine.run(function, tasks)

    def cancel(self) -> None:
        """See `SparkEngine.cancel`."""
        if self._engine is not None:
            self._engine.cancel()

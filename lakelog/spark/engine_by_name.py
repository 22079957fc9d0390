"""Engines by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ..engines.choice import INLINE, SPARK
from ..engines.engine import Engine, InlineEngine
from ..errors import InvalidArgumentError
from .auto_engine import AutoEngine
from .lazy_engine import LazySparkEngine

AUTO = "auto"


def choose_engine(engine: Engine | str | None = None, object_stores: Sequence[str] = ()) -> Engine:
    """An engine by its name: ``auto``, ``spark`` or ``inline``; None for ``auto``.

    Args:
        object_stores: what else a Spark that is started for it shall open; see `session`.

    Raises:
        InvalidArgumentError: another name.
    """
    if engine is None or engine == AUTO:
        return AutoEngine(LazySparkEngine(object_stores))
    if engine == SPARK:
        return LazySparkEngine(object_stores)
    if engine == INLINE:
        return InlineEngine()
    if isinstance(engine, str):
        raise InvalidArgumentError(f"engine={engine!r} is not 'auto', 'spark' or 'inline'")
    return engine

"""Whether this process makes spans: not, unless its environment or its code says so.

OpenTelemetry is imported only then. Whoever makes spans asks for the tracer when it is made itself
(a producer, a consumer), or once a step of seconds, so that nothing asks once a record.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ..errors import InvalidConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from .tracer import Tracer

#: ``true``: every process with this in its environment makes spans.
VARIABLE = "LAKELOG_TRACING"


class _Switch:
    """What the process was told; None: nothing yet, so that its environment decides."""

    tracer: Tracer | None = None
    is_decided = False


def start(tracer_provider: TracerProvider | None = None) -> None:
    """Has what this process does from now on make spans.

    Producers and consumers that were made before stay as they are.

    Args:
        tracer_provider: whose spans they are; default: OpenTelemetry's own of the process.

    Raises:
        MissingExtraError: OpenTelemetry's API is not installed.
    """
    from .tracer import Tracer

    _Switch.tracer = Tracer(tracer_provider)
    _Switch.is_decided = True


def stop() -> None:
    """Has no more spans made, whatever the environment says; else as `start`."""
    _Switch.tracer = None
    _Switch.is_decided = True


def tracer() -> Tracer | None:
    """What makes this process's spans; None: it makes none.

    Raises:
        MissingExtraError: the environment asks for spans, and the API is not installed.
        InvalidConfigError: the environment has neither ``true`` nor ``false``.
    """
    if not _Switch.is_decided:
        if _is_asked_for(os.environ.get(VARIABLE, "")):
            start()
        else:
            stop()
    return _Switch.tracer


def archiving(topic: str, partitions: int, started_ns: int) -> AbstractContextManager[object]:
    """See `Tracer.archive`; nothing where there are no spans."""
    found = tracer()
    return nullcontext() if found is None else found.archive(topic, partitions, started_ns)


def step(name: str, topic: str) -> AbstractContextManager[object]:
    """A span of a step of work on a topic, such as ``copy``; nothing where there are no spans."""
    found = tracer()
    return nullcontext() if found is None else found.step(name, topic)


def _is_asked_for(text: str) -> bool:
    asked = {"": False, "false": False, "true": True}.get(text.strip().lower())
    if asked is None:
        raise InvalidConfigError(
            f"the environment variable {VARIABLE}={text!r} is not legal: it takes true or false",
            name=VARIABLE,
            value=text,
        )
    return asked

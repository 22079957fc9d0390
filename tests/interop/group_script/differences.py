"""Where lakelog answers otherwise on purpose, and what it answers there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What kafka-python calls a wrong argument or call, lakelog calls one thing.
ARGUMENTS = {
    f"error: {name}"
    for name in (
        "AssertionError",
        "IllegalStateError",
        "IllegalArgumentError",
        "KafkaConfigurationError",
        "TypeError",
        "ValueError",
    )
}
OURS = {
    f"error: {name}" for name in ("InvalidArgumentError", "InvalidConfigError", "InvalidTopicError")
}


@dataclass(frozen=True)
class Difference:
    """An answer of lakelog's."""

    lakelog: Any
    why: str


DIFFERENCES: Mapping[tuple[str, str], Difference] = {
    ("positions", "poll before"): Difference(
        "error: InvalidArgumentError",
        "a consumer that reads nothing would wait for ever; Kafka's own client refuses it, too",
    ),
    ("commits", "commit of -1"): Difference(
        "error: InvalidArgumentError", "no record has that offset; kafka-python sends it"
    ),
    ("commits", "committed after that"): Difference(
        1000, "the commit of -1 was refused; a broker takes it, and then nothing is committed"
    ),
    ("illegal", "an empty group id"): Difference(
        "error: InvalidArgumentError", "brokers take commits of it for clients of old alone"
    ),
    ("illegal", "reset to anywhere"): Difference(
        "error: InvalidConfigError", "settings are checked when they are given"
    ),
}


def explained(scenario: str, question: str, kafka: Any, lakelog: Any) -> bool:
    """Whether the two answers are the same, or differ as they should."""
    known = DIFFERENCES.get((scenario, question))
    if known is not None:
        return bool(lakelog == known.lakelog and kafka != lakelog)
    if isinstance(kafka, str) and kafka in ARGUMENTS:
        return lakelog in OURS
    return bool(kafka == lakelog)

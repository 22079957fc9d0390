"""What is asked of a log after each step, and the form in which every log answers.

| question | answer |
|---|---|
| ``earliest``, ``latest`` | an offset |
| ``records`` | every record: offset, timestamp, key, value, headers |
| ``from OFFSET`` | the offset of the first record at or after it, None at the end, or an error |
| ``time AGE`` | (offset, age) of the earliest offset at least that young, None if there is none |
| ``max-timestamp`` | (offset, age) of the first record with the largest timestamp, None |
| ``step`` | what the step itself gave back, or its error |
| ``committed`` | (offset, metadata) of the topic's group, None |
| ``settings`` | of each setting its value, and whether it is the topic's own |

The last two are asked of clients alone.

Ages are milliseconds before the workload's begin. Bytes are hexadecimal, so that answers are JSON.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

from .workload import HOUR_MS, MINUTE_MS, Alter, Append, Commit, ForgetGroup, Step, Workload

Answer = Any  # JSON: lists and not tuples

#: How many positions a look tries, beside those that are always tried.
TIMES = 14
OFFSETS = 8
#: Of clients: each costs them ten times as much, and they look more often.
TIMES_OF_CLIENTS = 6


class Log(Protocol):
    """One topic of one partition, on whatever keeps it."""

    def take(self, step: Step) -> Answer:
        """Takes a step; its answer, or the name of its error."""

    def settle(self, step: Step) -> None:
        """Called when the looks after the step have been taken."""

    def ask(self, question: str) -> Answer: ...

    def close(self) -> None: ...


def questions(workload: Workload, step_number: int) -> tuple[str, ...]:
    """What is asked after a step: the same for every log, from the workload alone."""
    rng = random.Random(workload.seed * 1_000_003 + step_number)
    done = workload.steps[: step_number + 1]
    rows = [row for step in done if isinstance(step, Append) for row in step.rows]
    ages = sorted({row.age_ms for row in rows if row.age_ms is not None})
    exact = rng.sample(ages, min(1 if workload.for_clients else 4, len(ages)))
    targets = {age + nudge for age in exact for nudge in (-1, 0, 1)}
    times = TIMES_OF_CLIENTS if workload.for_clients else TIMES
    targets |= {rng.randint(0, 73) * HOUR_MS + 45 * MINUTE_MS for _ in range(times - len(targets))}
    offsets = {rng.randint(0, len(rows) + 1) for _ in range(OFFSETS)}
    if isinstance(workload.steps[step_number], (Commit, ForgetGroup, Alter)):
        return "earliest", "latest", "records", "committed", "settings"
    return (
        "earliest",
        "latest",
        "records",
        "max-timestamp",
        *(f"time {age}" for age in sorted(targets)),
        *(f"from {offset}" for offset in sorted(offsets)),
        *(("committed", "settings") if workload.for_clients else ()),
    )


def record_answer(
    offset: int,
    age_ms: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: Any,
) -> Answer:
    """A record as JSON."""
    pairs = [[name, _hex(data)] for name, data in headers]
    return [offset, age_ms, _hex(key), _hex(value), pairs]


def error_answer(name: str) -> Answer:
    """A refusal, by the name of its error.

    librdkafka says of a record's wrong timestamp what it says of a missing key.
    """
    return "InvalidRecordError" if name == "InvalidTimestampError" else name


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()

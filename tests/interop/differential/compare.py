"""Takes a workload's steps on two logs at once and compares what both answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .answers import Answer, Log, questions
from .oddities import Taken, oddity, segments
from .workload import Compact, Move, Retain, Step, Workload

#: Longer than the broker's intervals for retention (1 s) and compaction (0.2 s) in such a test: by
#: then it has begun. How long it takes is waited for below.
BEGUN_S = 1.8
SETTLED_S = 60.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One question, and what both logs answered."""

    seed: int
    step_number: int
    step: Step
    question: str
    kafka: Answer
    lakelog: Answer
    oddity: str | None = None

    @property
    def agrees(self) -> bool:
        return bool(self.kafka == self.lakelog)

    @property
    def is_unexplained(self) -> bool:
        return not self.agrees and self.oddity is None


def compare(
    workload: Workload, kafka: Log, lakelog: Log, wait: Callable[[float], None] = time.sleep
) -> Iterator[Comparison]:
    """A comparison a question. Ends after the first step with one that nobody can explain."""
    taken: list[Taken] = []
    for number, step in enumerate(workload.steps):
        mine, its = lakelog.take(step), kafka.take(step)
        why = None if its == mine else oddity("step", its, mine, [], 0, [])
        found = [Comparison(workload.seed, number, step, "step", its, mine, why)]
        if not isinstance(step, Move):
            found += _look(workload, number, step, kafka, lakelog, taken, its, wait)
            kafka.settle(step)
            lakelog.settle(step)
        yield from found
        if any(one.is_unexplained for one in found):
            return


def _look(
    workload: Workload,
    number: int,
    step: Step,
    kafka: Log,
    lakelog: Log,
    taken: list[Taken],
    answer: Answer,
    wait: Callable[[float], None],
) -> list[Comparison]:
    asked = questions(workload, number)
    mine = {question: lakelog.ask(question) for question in asked}
    if isinstance(step, (Retain, Compact)):
        _await(kafka, mine, wait)
    its = {question: kafka.ask(question) for question in asked}
    taken.append(Taken(step, answer, its["earliest"], its["latest"]))
    there = segments(workload, taken)
    return [
        Comparison(
            workload.seed,
            number,
            step,
            question,
            its[question],
            mine[question],
            None
            if its[question] == mine[question]
            else oddity(
                question,
                its[question],
                mine[question],
                mine["records"],
                mine["earliest"],
                there,
            ),
        )
        for question in asked
    ]


def _await(kafka: Log, expected: dict[str, Answer], wait: Callable[[float], None]) -> None:
    """Until the broker's own threads have done what the step asked for, or for long enough."""
    wait(BEGUN_S)
    waited_s = 0.0
    while waited_s < SETTLED_S:
        if all(kafka.ask(question) == expected[question] for question in ("earliest", "records")):
            return
        wait(0.25)
        waited_s += 0.25

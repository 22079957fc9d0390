"""Answers of a real broker, kept in a file, so that they can be compared with when none is there.

One line a workload: its seed, a fingerprint of what was done, the moment it began, and the answers
by step and question.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .answers import Answer, Log
from .workload import Step, Workload, draw

FILE = Path(__file__).with_name("kafka_answers.jsonl.gz")
#: What it answers clients, to workloads for them.
CLIENTS_FILE = Path(__file__).with_name("kafka_answers_to_clients.jsonl.gz")


def fingerprint(workload: Workload) -> str:
    """Changes with any step: answers to another workload answer nothing."""
    text = repr((workload, workload.steps))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Recorder:
    """A log that writes down what another one answers."""

    log: Log
    workload: Workload
    begin_ms: int
    step_number: int = -1
    answers: list[dict[str, Answer]] = field(default_factory=list)

    def take(self, step: Step) -> Answer:
        answer = self.log.take(step)
        self.answers.append({"step": answer})
        return answer

    def settle(self, step: Step) -> None:
        self.log.settle(step)

    def ask(self, question: str) -> Answer:
        answer = self.log.ask(question)
        self.answers[-1][question] = answer
        return answer

    def close(self) -> None:
        self.log.close()

    def line(self) -> dict[str, Any]:
        return {
            "seed": self.workload.seed,
            "fingerprint": fingerprint(self.workload),
            "begin_ms": self.begin_ms,
            "answers": self.answers,
        }


class RecordedLog:
    """A log that answers what was recorded; see `answers.Log`."""

    def __init__(self, answers: list[dict[str, Answer]]) -> None:
        self._answers = iter(answers)
        self._now: dict[str, Answer] = {}

    def take(self, step: Step) -> Answer:
        self._now = next(self._answers)
        return self._now["step"]

    def settle(self, step: Step) -> None: ...

    def ask(self, question: str) -> Answer:
        return self._now[question]

    def close(self) -> None: ...


def write(lines: Iterable[dict[str, Any]], file: Path = FILE) -> None:
    """Keeps recorded workloads, by seed."""
    text = "".join(
        json.dumps(line, separators=(",", ":")) + "\n"
        for line in sorted(lines, key=lambda line: line["seed"])
    )
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(
    file: Path = FILE, *, for_clients: bool = False
) -> Iterator[tuple[Workload, int, RecordedLog]]:
    """Each recorded workload, when it began, and the log that answers.

    Raises:
        ValueError: the seeds now stand for other workloads; they are to be recorded again.
    """
    for text in gzip.decompress(file.read_bytes()).decode().splitlines():
        line = json.loads(text)
        workload = draw(line["seed"], for_clients=for_clients)
        if fingerprint(workload) != line["fingerprint"]:
            raise ValueError(
                f"seed {line['seed']} stands for another workload than was recorded: record them "
                "again with --record"
            )
        yield workload, line["begin_ms"], RecordedLog(line["answers"])

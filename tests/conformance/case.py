"""The cases of ``cases.yml`` as values, and what the table must say of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CASES_FILE = Path(__file__).with_name("cases.yml")
STATUSES = ("same", "stricter", "different on purpose", "not applicable")
ASSERTS = ("all", "part", "none")
LAYOUTS = ("untiered", "tiered", "split", "cold")

_TABLE: dict[str, Any] = yaml.safe_load(CASES_FILE.read_text("utf-8"))


@dataclass(frozen=True)
class Case:
    """One of Kafka's test cases, and what becomes of it here.

    Raises:
        ValueError: it does not say what it should, such as how much of Kafka's test it asserts.
    """

    number: int
    file: str  # of the test, in the repository it comes from
    test: str
    about: str
    status: str  # one of STATUSES
    asserts: str | None = None  # one of ASSERTS; needed
    left_out: str | None = None  # what Kafka's test asserts and this does not; needed with part
    why: str | None = None  # needed unless the status is same
    layouts: tuple[str, ...] = ("untiered",)
    topic: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        runs = self.status != "not applicable"
        looks = any({"expect", "error"} & step.keys() for step in self.steps)
        for right, rule in (
            (self.status in STATUSES, f"the status is one of {STATUSES}"),
            (self.asserts in ASSERTS, f"asserts is one of {ASSERTS}"),
            ((self.asserts != "none") == runs, "asserts is none where it is not applicable"),
            ((self.left_out is None) == (self.asserts != "part"), "part says what is left_out"),
            ((self.why is None) == (self.status == "same"), "what is not the same says why"),
            (set(self.layouts) <= set(LAYOUTS), f"layouts are some of {LAYOUTS}"),
            (bool(self.steps) == runs, "what applies has steps"),
            (looks or not runs, "what applies looks at something"),
        ):
            if not right:
                raise ValueError(f"case {self.number}: {rule}")

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Case:
        lists = {name: tuple(row[name]) for name in ("layouts", "steps") if name in row}
        return cls(**{**row, **lists, "file": _TABLE["files"][row["file"]]})


CASES = [Case.of(row) for row in _TABLE["cases"]]


def counts() -> dict[str, int]:
    """How many cases have each status."""
    counted = Counter(case.status for case in CASES)
    return {status: counted[status] for status in STATUSES}


def asserted() -> dict[str, int]:
    """How many cases assert all that Kafka's test does, a part, none."""
    counted = Counter(case.asserts for case in CASES)
    return {asserts: counted[asserts] for asserts in ASSERTS}


def runs() -> Iterator[tuple[Case, str]]:
    """Every case that applies, on each of its layouts."""
    return ((case, layout) for case in CASES if case.steps for layout in case.layouts)

"""Rows as a Markdown table, as JSON, and held against those of an earlier run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .machine import Machine
from .measures import OURS, UNITS, Goal, Row, times_as_good

FORMAT = 1
HEAD = "| what | lakelog | | beside | | ratio | goal |\n|---|---:|---:|---|---:|---:|---:|"

#: Less than this is told of nobody: rounds of the same code differ by as much from day to day.
LEAST_CHANGE = 0.05


@dataclass(frozen=True)
class Report:
    """All of one run: its rows by benchmark, in order."""

    machine: Machine
    taken: str  # the day, ISO 8601
    rounds: int
    scale: float
    rows: Mapping[str, Sequence[Row]]
    failed: Sequence[str] = ()  # what could not be measured, and why

    def to_json(self) -> str:
        """Every figure of every round."""
        whole = {
            "format": FORMAT,
            "machine": asdict(self.machine),
            "taken": self.taken,
            "rounds": self.rounds,
            "scale": self.scale,
            "failed": self.failed,
            "rows": [
                {
                    "benchmark": benchmark,
                    "what": row.what,
                    "unit": row.unit.name,
                    "samples": row.samples,
                    "goals": [asdict(goal) for goal in row.goals],
                }
                for benchmark, rows in self.rows.items()
                for row in rows
            ],
        }
        # One line a row: a change of figures is a change of lines.
        rows = whole.pop("rows")
        head = json.dumps(whole, indent=1, ensure_ascii=False)[:-2]
        lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
        return f'{head},\n "rows": [\n{lines}\n ]\n}}\n'

    @classmethod
    def of_json(cls, text: str) -> Report:
        """The report that `to_json` wrote.

        Raises:
            ValueError: it is of another format.
        """
        whole: dict[str, Any] = json.loads(text)
        if whole.get("format") != FORMAT:
            raise ValueError(f"format {whole.get('format')} was written by another version")
        rows: dict[str, list[Row]] = {}
        for one in whole["rows"]:
            samples = {side: tuple(values) for side, values in one["samples"].items()}
            goals = tuple(Goal(**goal) for goal in one["goals"])
            row = Row(one["what"], UNITS[one["unit"]], samples, goals)
            rows.setdefault(one["benchmark"], []).append(row)
        machine = Machine(**whole["machine"])
        failed = tuple(whole.get("failed", ()))
        return cls(machine, whole["taken"], whole["rounds"], whole["scale"], rows, failed)

    def missed(self) -> Iterator[str]:
        """The goals that are not reached, in words."""
        for rows in self.rows.values():
            for row in rows:
                for goal in row.missed():
                    yield f"{row.what}: {_measured(row, goal)}, goal {_goal(row, goal)}"


def table(rows: Iterable[Row]) -> str:
    return "\n".join([HEAD, *(line for row in rows for line in lines(row))])


def lines(row: Row) -> Iterator[str]:
    """A line for each other side, the first with lakelog's own figure."""
    ours = f"| {row.what} | {row.unit.show(row.ours)} | {_spread(row.spread(OURS))} "
    absolute = [_goal(row, goal) for goal in row.goals if goal.than is None]
    for number, side in enumerate(row.others):
        goals = [_goal(row, goal) for goal in row.goals if goal.than == side]
        if number == 0:
            goals = absolute + goals
        yield (
            f"{'| | | ' if number else ours}| {side} | {row.unit.show(row.median(side))} "
            f"| {ratio(row.times(side))} | {', '.join(goals)} |"
        )
    if not row.others:
        yield f"{ours}| | | | {', '.join(absolute)} |"


def ratio(times: float) -> str:
    """How many times as good, with as many digits as mean something."""
    digits = f"{times:.0f}" if times >= 20 else f"{times:.1f}" if times >= 2 else f"{times:.2f}"
    return f"{digits} ×"


def _spread(share: float) -> str:
    return f"± {share:.0%}" if share else ""


def _goal(row: Row, goal: Goal) -> str:
    if goal.than is not None:
        return f"≥ {ratio(goal.at_least)}"
    return f"{'≥' if row.unit.more_is_better else '≤'} {row.unit.show(goal.at_least)}"


def _measured(row: Row, goal: Goal) -> str:
    if goal.than is None:
        return row.unit.show(row.ours)
    return f"{ratio(row.times(goal.than))} of {goal.than}"


@dataclass(frozen=True)
class Change:
    """A row that is as fast as `times` of what it was; `than` is the side it was held against."""

    what: str
    than: str | None
    times: float
    noise: float  # of both runs, as a share

    @property
    def is_slower(self) -> bool:
        return self.times < 1 - max(self.noise, LEAST_CHANGE)

    @property
    def is_faster(self) -> bool:
        return self.times > 1 + max(self.noise, LEAST_CHANGE)

    def __str__(self) -> str:
        against = f" beside {self.than}" if self.than else ""
        return f"{self.what}: {self.times:.2f} × of before{against} (noise {self.noise:.0%})"


def changes(before: Report, now: Report) -> Iterator[Change]:
    """Each row that both runs have.

    Held against a side that both measured, if there is one: what made the machine slow that day
    made it slow, too. The side whose ratio was steadiest is taken.
    """
    for benchmark, rows in now.rows.items():
        earlier = {row.what: row for row in before.rows.get(benchmark, ())}
        for row in rows:
            old = earlier.get(row.what)
            if old is None:
                continue
            common = [side for side in row.others if side in old.others]
            if common:
                side = min(common, key=lambda one: _noise(old, row, one))
                now_times, old_times = row.times(side), old.times(side)
                changed = times_as_good(now_times, old_times, more=True)
                yield Change(row.what, side, changed, _noise(old, row, side))
            else:
                changed = times_as_good(row.ours, old.ours, more=row.unit.more_is_better)
                yield Change(row.what, None, changed, old.spread(OURS) + row.spread(OURS))


def _noise(old: Row, new: Row, side: str) -> float:
    return old.times_spread(side) + new.times_spread(side)

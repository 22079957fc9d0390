"""The ways of a record that `.github/CONTRIBUTING.md` tells are those that it takes."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import lakelog
from lakelog import Lakelog

HOME = Path(lakelog.__file__).parent
PAGE = HOME.parent / ".github" / "CONTRIBUTING.md"
WAYS = PAGE.read_text("utf-8").split("\n## A record's way\n")[1].split("\n## ")[0]
STEP = re.compile(r"^(?P<indent> *)(?P<name>[\w.]+) +(?P<path>[\w/]+\.py) ", re.M)


class Step(NamedTuple):
    """A function, and how many of those told above it have called it."""

    path: str
    name: str
    depth: int


def told(title: str) -> list[Step]:
    """What the page says of one way, in its order."""
    block = WAYS.split(f"\n**{title}**")[1].split("```")[1]
    lines = [line for line in block.splitlines() if line]
    steps = [found for line in lines if (found := STEP.match(line))]
    assert len(steps) == len(lines)
    return [Step(step["path"], step["name"], len(step["indent"]) // 2) for step in steps]


def callers(steps: list[Step]) -> Iterator[tuple[str, ...]]:
    """For each step its place, below the places of the steps that have called it."""
    above: list[str] = []
    for step in steps:
        above[step.depth :] = [f"{step.path} {step.name}"]
        yield tuple(above)


def ways_taken(told: set[str], work: Callable[[], object]) -> list[tuple[str, ...]]:
    """Of each call of a function that is told, those told that were under way; in any thread."""
    taken = []

    def place(frame: FrameType) -> str | None:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(HOME):
            return None
        return f"{path.relative_to(HOME).as_posix()} {frame.f_code.co_qualname}"

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and place(frame) in told:
            under_way: list[str] = []
            at: FrameType | None = frame
            while at is not None:
                if (name := place(at)) in told and name is not None:
                    under_way.insert(0, name)
                at = at.f_back
            taken.append(tuple(under_way))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return taken


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.embedded(tmp_path, engine="inline") as lake:
        lake.topics.create("t", 1, {"retention.ms": -1, "local.retention.ms": 0})
        yield lake


def send(lake: Lakelog) -> None:
    with lake.producer() as producer:
        producer.send("t", "v", key="k", timestamp_ms=1_700_000_000_000).result()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has qualified names from 3.11 on")
def test_a_record_goes_the_ways_that_are_told(lake: Lakelog) -> None:
    def read() -> None:
        send(lake)
        assert len(list(lake.log("t").read(0, "2023-11-14T22:13:20Z").records())) == 2

    works: dict[str, Callable[[], object]] = {
        "Sent": lambda: send(lake),
        "Archived": lambda: lake.archive("t"),
        "Read by time": read,
    }
    for title, work in works.items():
        expected = list(callers(told(title)))
        taken = ways_taken({place for way in expected for place in way}, work)
        for first, ways in groupby(expected, key=itemgetter(0)):  # those of one thread
            rest = iter(taken)
            missed = [way for way in ways if way not in rest]  # each after the one before it
            assert missed == [], (title, first)

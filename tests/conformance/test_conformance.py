"""Kafka's own test cases, run against lakelog; the cases are data, in ``cases.yml``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runner import CASES, LAYOUTS, STATUSES, Case, Run, counts, runs

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize(
    ("case", "layout"),
    [pytest.param(*run, id=f"{run[0].number}-{run[0].test}-{run[1]}") for run in runs()],
)
def test_case(case: Case, layout: str, redis_url: str, tmp_path: Path) -> None:
    run = Run(case, layout, redis_url, tmp_path / "cold")
    try:
        run.run()
    finally:
        run.close()


def test_the_table_is_whole():
    """Numbers are unique, a deviation says why, and what applies looks at something."""
    numbers = [case.number for case in CASES]
    assert len(set(numbers)) == len(numbers)
    tests = [(case.file, case.test) for case in CASES]
    assert len(set(tests)) == len(tests)
    for case in CASES:
        assert case.status in STATUSES
        assert set(case.layouts) <= set(LAYOUTS)
        assert bool(case.steps) == (case.status != "not applicable"), case
        assert (case.why is None) == (case.status == "same"), case
        if case.steps:
            assert any({"expect", "error"} & step.keys() for step in case.steps), case


def test_the_readme_tells_the_counts():
    sentence = re.search(
        r"(\d+) of Kafka's own test cases: (\d+) same, (\d+) stricter, (\d+) different on purpose, "
        r"(\d+) not applicable".replace(" ", r"\s+"),
        README.read_text("utf-8"),
    )
    assert sentence is not None
    assert tuple(map(int, sentence.groups())) == (len(CASES), *counts().values())

"""Kafka's own test cases, run against lakelog; the cases are data, in ``cases.yml``."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from case import CASES, Case, asserted, counts, runs
from runner import Run

README = Path(__file__).with_name("README.md")


def is_slow(case: Case, layout: str) -> bool:
    """Records in one tier alone, where the case is run with records in both, too."""
    return layout in ("cold", "tiered") and "split" in case.layouts


@pytest.mark.parametrize(
    ("case", "layout"),
    [
        pytest.param(
            *run,
            id=f"{run[0].number}-{run[0].test}-{run[1]}",
            marks=[pytest.mark.slow] if is_slow(*run) else [],
        )
        for run in runs()
    ],
)
def test_case(case: Case, layout: str, redis_url: str, tmp_path: Path) -> None:
    run = Run(case, layout, redis_url, tmp_path / "cold")
    try:
        run.run()
    finally:
        run.close()


def test_the_table_is_whole() -> None:
    numbers = [case.number for case in CASES]
    assert len(set(numbers)) == len(numbers)
    tests = [(case.file, case.test) for case in CASES]
    assert len(set(tests)) == len(tests)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"asserts": None}, "asserts is one of"),
        ({"asserts": "most"}, "asserts is one of"),
        ({"asserts": "none"}, "asserts is none where it is not applicable"),
        ({"asserts": "part"}, "part says what is left_out"),
        ({"left_out": "a word"}, "part says what is left_out"),
        ({"status": "not applicable", "why": "so"}, "asserts is none where it is not applicable"),
        ({"status": "stricter"}, "what is not the same says why"),
        ({"status": "like"}, "the status is one of"),
        ({"layouts": ("warm",)}, "layouts are some of"),
        ({"steps": ()}, "what applies has steps"),
        ({"steps": ({"append": 1},)}, "what applies looks at something"),
    ],
)
def test_a_case_that_does_not_say_what_it_should_is_refused(changes: Any, rule: str) -> None:
    case = Case(1, "file", "test", "about", "same", "all", steps=({"look": 1, "expect": {}},))
    with pytest.raises(ValueError, match=re.escape(rule)):
        replace(case, **changes)


def test_the_readme_tells_the_counts() -> None:
    sentence = re.search(
        r"(\d+) of Kafka's own test cases: (\d+) same, (\d+) stricter, (\d+) different on purpose, "
        r"(\d+) not applicable. (\d+) assert all that Kafka's test asserts, (\d+) a part".replace(
            " ", r"\s+"
        ),
        README.read_text("utf-8"),
    )
    assert sentence is not None
    assert tuple(map(int, sentence.groups())) == (
        len(CASES),
        *counts().values(),
        asserted()["all"],
        asserted()["part"],
    )

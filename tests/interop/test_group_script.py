"""Consumers and groups give the answers of a real broker, as recorded (see `group_script`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from group_script import recorded
from group_script.differences import DIFFERENCES, explained
from group_script.scenarios import SCENARIOS
from group_script.sides import LakelogSide

RECORDED = recorded.read()


@pytest.mark.parametrize("name", SCENARIOS)
def test_lakelog_answers_as_kafka_did(name: str, redis_url: str, tmp_path: Path) -> None:
    side = LakelogSide(redis_url, tmp_path / "cold")
    try:
        answers: dict[str, Any] = dict(SCENARIOS[name](side, tmp_path))
    finally:
        side.close()
    theirs = RECORDED[name]
    assert answers.keys() == theirs.keys()
    unlike = {
        question: (theirs[question], answer)
        for question, answer in answers.items()
        if not explained(name, question, theirs[question], answer)
    }
    assert unlike == {}


def test_differences_are_of_questions_that_are_asked() -> None:
    for (scenario, question), difference in DIFFERENCES.items():
        assert RECORDED[scenario][question] != difference.lakelog
        assert difference.why

"""The cases can fail: one of them notices each defect, or ``mutants.yml`` says why none does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from case import runs
from mutation import ALL_MUTANTS, notices

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("mutants.yml").read_text("utf-8"))
NOTICED: dict[str, str] = TABLE["noticed"]
UNNOTICED: dict[str, str] = TABLE["unnoticed"]
RUNS = {f"{case.number}-{layout}": (case, layout) for case, layout in runs()}


def test_every_defect_is_in_the_table_once() -> None:
    assert not NOTICED.keys() & UNNOTICED.keys()
    assert NOTICED.keys() | UNNOTICED.keys() == ALL_MUTANTS.keys()


@pytest.mark.parametrize(("name", "place"), NOTICED.items(), ids=NOTICED.keys())
def test_the_case_notices_the_defect(name: str, place: str, redis_url: str, tmp_path: Path) -> None:
    assert notices(ALL_MUTANTS[name], *RUNS[place], redis_url, tmp_path)


def test_every_mutant_changes_what_is_there() -> None:
    for mutant in ALL_MUTANTS.values():
        with mutant.applied():
            pass


@pytest.mark.slow
@pytest.mark.parametrize("name", UNNOTICED)
def test_no_case_notices_what_none_is_said_to(name: str, make_redis: Any, tmp_path: Path) -> None:
    server = make_redis()
    for place, run in RUNS.items():
        with server.client() as client:
            client.flushall()
        assert not notices(ALL_MUTANTS[name], *run, server.url, tmp_path / place), place

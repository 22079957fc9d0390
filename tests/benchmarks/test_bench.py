from __future__ import annotations

from pathlib import Path

import pytest

from .bench import FEW, Bench
from .local_spark import LocalSpark
from .measures import OURS


def bench(folder: Path, rounds: int, scale: float = 1.0) -> Bench:
    return Bench(folder, LocalSpark(folder), rounds, scale)


def test_sides_take_turns_there_and_back_and_rounds_that_warm_up_do_not_count(
    tmp_path: Path,
) -> None:
    called: list[str] = []

    def side(name: str) -> float:
        called.append(name)
        return float(len(called))

    sides = {name: lambda name=name: side(name) for name in "ab"}
    found = bench(tmp_path, 2).interleaved(sides, warm=2)
    assert "".join(called) == "ba" + "ab" + "ba" + "ab"
    assert found == {"a": (6.0, 7.0), "b": (5.0, 8.0)}


def test_a_side_that_measures_several_figures_keeps_those_of_each_round(tmp_path: Path) -> None:
    rounds = iter(range(10))

    def once() -> dict[str, float]:
        number = float(next(rounds))
        return {"time": number, "memory": 10 * number}

    found = bench(tmp_path, 3).repeated(once)
    assert found == {"time": (1.0, 2.0, 3.0), "memory": (10.0, 20.0, 30.0)}


def test_what_takes_long_has_few_rounds_and_counts_have_a_least(tmp_path: Path) -> None:
    assert (bench(tmp_path, 5).few, bench(tmp_path, 1).few) == (FEW, 1)
    little = bench(tmp_path, 1, 0.002)
    assert (little.scaled(10_000), little.scaled(100, 3)) == (20, 3)


def test_a_peer_that_fails_is_left_out_and_told_of(tmp_path: Path) -> None:
    asked = []

    def peer() -> float:
        asked.append(1)
        if len(asked) == 3:
            raise TimeoutError("no answer after 120 s\nof the broker")
        return 1.0

    given = bench(tmp_path, 4)
    found = given.interleaved({OURS: lambda: 2.0, "Kafka": peer, "others": lambda: 3.0})
    assert found == {OURS: (2.0,) * 4, "others": (3.0,) * 4}
    assert given.failed == ["Kafka: no answer after 120 s"]
    assert len(asked) == 3


def test_lakelog_itself_must_not_fail(tmp_path: Path) -> None:
    def ours() -> float:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        bench(tmp_path, 1).interleaved({OURS: ours})

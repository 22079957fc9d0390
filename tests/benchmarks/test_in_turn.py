"""An earlier lakelog and this one, in turn."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from . import in_turn


def test_the_ratio_is_the_median_of_the_rounds_and_not_that_of_the_medians():
    before = {"a": [2.0, 2.0, 12.0], "b": [0.001, 0.002, 0.003]}
    now = {"a": [1.0, 2.0, 4.0], "b": [0.002, 0.002, 0.002]}
    assert in_turn.table(before, now).splitlines() == [
        *in_turn.HEAD.splitlines(),
        "| a | 2.00 s | 2.00 s | 2.00 ± 50% |",
        "| b | 2.00 ms | 2.00 ms | 1.00 ± 50% |",
    ]


@pytest.mark.slow
def test_each_tree_runs_its_own_lakelog(tmp_path: Path):
    """The earlier one takes its time to be imported here, so that both are told apart."""
    earlier = tmp_path / "earlier"
    git = ["git", "-C", str(in_turn.PROJECT)]
    subprocess.run([*git, "worktree", "add", "--detach", "-q", str(earlier), "HEAD"], check=True)
    try:
        slower = earlier / "lakelog" / "__init__.py"
        with slower.open("a", encoding="utf-8") as file:
            file.write("\nimport time; time.sleep(1)\n")
        before, now = in_turn.measured(tmp_path, earlier, rounds=1, scale=0.001)
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", str(earlier)], check=True)
    assert before.keys() == now.keys()
    assert before["`import lakelog`"][0] > 1.0
    assert len(in_turn.table(before, now).splitlines()) == len(now) + 2

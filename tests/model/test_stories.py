"""A story is the same whatever ran before it in the same process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from stories import run


def told() -> list[tuple[str, int]]:
    heard: list[tuple[str, int]] = []

    class Told(RuleBasedStateMachine):
        @rule(text=st.text(), number=st.integers())
        def hear(self, text: str, number: int) -> None:
            heard.append((text, number))

    run(Told, seeds=3, steps=40)
    return heard


def test_a_module_imported_meanwhile_changes_no_story(tmp_path: Path) -> None:
    before = told()
    source = tmp_path / "words.py"
    source.write_text("".join(f"a{n} = 'word {n}', {1_003 * n + 7}\n" for n in range(400)))
    spec = importlib.util.spec_from_file_location("words_of_a_story", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        assert told() == before
    finally:
        del sys.modules[spec.name]

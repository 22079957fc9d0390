"""Reads that last show how far they are, where somebody waits; others show nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.base import watched


class Bar:
    """What is told to a bar."""

    def __init__(self) -> None:
        self.told: list[tuple[float, str]] = []
        self.what: tuple[str, float] | None = None
        self.is_shown: bool | None = None
        self.task_ids = [0]

    def start(self) -> None:
        self.is_shown = True

    def stop(self) -> None:
        self.is_shown = False

    def add_task(self, what: str, total: float, said: str) -> None:
        self.what = (what, total)

    def update(self, task: int, completed: float, said: str) -> None:
        self.told.append((completed, said))


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Bar:
    bar = Bar()
    monkeypatch.setattr(watched, "_bar", lambda: bar)
    monkeypatch.setattr(watched, "_is_watched", lambda: True)
    monkeypatch.setattr(watched, "PATIENCE_S", 0.0)
    return bar


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Any:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        with lake.producer() as producer:
            for n in range(300):
                producer.send("orders", f"{n}", timestamp_ms=1_700_000_000_000 + n)
        lake.archive("orders")
        with lake.producer() as producer:
            for n in range(300, 400):
                producer.send("orders", f"{n}", timestamp_ms=1_700_000_000_000 + n)
        yield lake


def test_a_range_tells_how_many_offsets_are_behind_it(bar: Bar, lake: Lakelog) -> None:
    read = lake.log("orders").read(0, 50)
    assert read.to_pandas().shape[0] == 350
    assert bar.what == ("reading orders-0", 350)
    assert [done for done, _ in bar.told] == sorted({done for done, _ in bar.told})
    assert bar.told[-1][0] == 350
    assert bar.is_shown is False


def test_a_search_tells_what_it_has_found(bar: Bar, lake: Lakelog) -> None:
    assert lake.log("orders").search('value = "77"').to_arrow().num_rows == 1
    assert bar.what == ("searching orders", 1.0)
    assert bar.told[-1] == (1.0, "1 found")
    assert bar.is_shown is False


def test_it_goes_with_what_breaks_off(bar: Bar) -> None:
    def read() -> None:
        with watched.watched("reading", 10) as at:
            at(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()
    assert bar.is_shown is False


def test_what_is_done_soon_shows_nothing(
    bar: Bar, lake: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "PATIENCE_S", 3600.0)
    lake.log("orders").read(0).to_arrow()
    assert bar.is_shown is None


def test_a_script_is_not_watched_and_a_shell_may_be_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.delitem(sys.modules, "IPython")
    assert not watched._is_watched()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert watched._is_watched()
    monkeypatch.setenv("LAKELOG_PROGRESS", "0")
    assert not watched._is_watched()

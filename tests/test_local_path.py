"""What is no path is refused wherever one is given, and in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.base.local_path import local_path
from lakelog.errors import EmbeddedRedisError, InvalidArgumentError
from lakelog.operate.diagnosis import diagnose

NO_PATHS = ["a\0b", "~nobody-of-this-name/log", "\udcff"]

TAKES: dict[str, Callable[[Any], Any]] = {
    "cold root": lambda path: Lakelog.connect(None, path, engine="inline"),
    "directory": lambda path: Lakelog.embedded(path, engine="inline"),
    "the path itself": lambda path: local_path(path, "log"),
}


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("path", NO_PATHS)
def test_what_is_no_path_is_refused(take: str, path: str) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be the path of a"):
        TAKES[take](path)


@pytest.mark.parametrize("take", TAKES)
def test_a_working_directory_that_is_gone_is_refused(
    take: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InvalidArgumentError, match="No such file or directory"):
        TAKES[take]("log")


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    with pytest.raises(EmbeddedRedisError, match="File name too long"):
        Lakelog.embedded(long, engine="inline")


@pytest.mark.parametrize("path", NO_PATHS)
def test_the_doctor_tells_of_them_too(path: str) -> None:
    for found in (diagnose(directory=path), diagnose(cold=path)):
        assert any("cannot be the path of a" in finding.found for finding in found)


def test_a_path_is_absolute_and_knows_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    assert local_path("log", "log") == tmp_path / "log"
    assert local_path("~/log", "log") == Path("/home/ada/log")

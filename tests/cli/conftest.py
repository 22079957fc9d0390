"""A command as one types it, on the test's own log."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelog.cli import main as cli

Command = Callable[..., tuple[str, str]]


@pytest.fixture
def where(redis_url: str, tmp_path: Path) -> list[str]:
    """The options that name the log."""
    return ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command, which ends with that code; gives what it prints on stdout and stderr."""

    def command(*arguments: str, stdin: str = "", code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        assert cli.main([*arguments]) == code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return printed.out, printed.err

    return command

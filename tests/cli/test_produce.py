"""`lakelog produce`, with files and at a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog import Lakelog

from .conftest import Command


def test_a_topic_is_made_with_settings(
    lake: Lakelog, where: list[str], tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("at;n\n31.12.2013 23:59;NA\n")
    made = ["--create", "--config", "retention.ms=-1", "--partitions", "2"]
    form = ["--time-format", "%d.%m.%Y %H:%M", "--zone", "Europe/Berlin"]
    more = ["--null", "NA", "--encoding", "cp1252"]
    said, told = command(
        *where, "produce", "rows", str(path), *made, "--timestamp-field", "at", *form, *more
    )
    assert "1 row of rows.csv" in said
    assert "retention" not in told  # nothing goes
    [record] = lake.log("rows").search().records()
    assert json.loads(record.value or b"") == {"at": "31.12.2013 23:59", "n": None}
    assert record.timestamp.isoformat() == "2013-12-31T22:59:00+00:00"
    command(*where, "produce", "lines", *made, stdin="a\n")
    assert lake.topics.get("lines").config.text("retention.ms") == "-1"
    _, told = command(*where, "produce", "lines", *made[1:3], stdin="a\n", code=1)
    assert "`lakelog topics alter lines --config …` changes one that is there" in told


def test_a_file_that_stands_where_the_topic_should_is_said(
    lake: Lakelog, where: list[str], tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n1\n")
    for create in ([], ["--create"]):
        _, told = command(*where, "produce", str(path), *create, code=1)
        assert f"is a file: name the topic before it, as in `lakelog produce TOPIC {path}`" in told
    assert not lake.topics.list()


def test_what_is_put_aside_is_counted(
    lake: Lakelog, where: list[str], tmp_path: Path, command: Command
) -> None:
    path, aside = tmp_path / "rows.csv", tmp_path / "aside.jsonl"
    path.write_text("a,b\n1,2\n3\n4,5\n")
    said, _ = command(*where, "produce", "rows", str(path), "--create", "--rejects", str(aside))
    assert f"topic rows has 2 rows of rows.csv; 1 line put aside: {aside}" in said


@pytest.mark.parametrize(
    ("more", "hint", "typed"),
    [
        ([], "each line is a record; Ctrl-D ends", b"hello\n"),
        (["--format", "csv"], "reading csv from here on; Ctrl-D ends", b"a\n1\n"),
    ],
)
def test_somebody_at_a_terminal_is_told_what_is_awaited(
    lake: Lakelog, where: list[str], more: list[str], hint: str, typed: bytes
) -> None:
    keyboard, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "lakelog", *where, "produce", "rows", "--create", *more],
        stdin=terminal,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(terminal)
        os.write(keyboard, typed + b"\x04")
        try:
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(keyboard)
    assert hint in told.decode()
    assert process.returncode == 0
    assert len(list(lake.log("rows").search().records())) == 1

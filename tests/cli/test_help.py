"""``lakelog help``: what is installed of the READMEs, as it is written or laid out."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lakelog
from lakelog.cli import help as readme
from lakelog.cli import main as cli

ROOT = Path(lakelog.__file__).parent


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert cli.main(["help", *arguments]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def on_a_terminal(*arguments: str, columns: int = 80) -> str:
    """What a terminal is given, without its colours."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "lakelog.cli.main", "help", *arguments]
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux's way to say that nobody writes any more
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).replace("\r\n", "\n")


def test_alone_it_lists_every_page_section_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys)
    for file in ROOT.rglob("README.md"):
        title = file.read_text("utf-8").splitlines()[0].removeprefix("# ")
        assert re.search(rf"^{file.parent.name} +{re.escape(title)}$", shown, re.MULTILINE)
    for command in ("demo", "delete-records", "help", "topics"):
        assert re.search(rf"^{command} +[A-Z].+\.$", shown, re.MULTILINE)
    for section in ("errors", "object-stores", "typed-columns", "without-redis", "on-a-cluster"):
        assert re.search(rf"[ \n]{section}[ \n]", shown)
    assert "None" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_page_is_printed_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    for file in ROOT.rglob("README.md"):
        assert printed(capsys, file.parent.name) == file.read_text("utf-8").strip() + "\n"


def test_a_section_is_printed_alone_by_its_words_or_its_anchor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "cold" / "README.md").read_text("utf-8")
    section = page.split("\n## Object stores\n")[1].split("\n## ")[0].strip()
    expected = f"## Object stores\n\n{section}\n"
    assert printed(capsys, "object-stores") == expected
    assert printed(capsys, "Object", "stores") == expected
    assert printed(capsys, "errors").startswith("## Errors\n")
    assert "OffsetOutOfRangeError" in printed(capsys, "errors")


def test_as_json_it_is_one_value(capsys: pytest.CaptureFixture[str]) -> None:
    text = json.loads(printed(capsys, "words", "--output", "json"))["markdown"]
    assert text.startswith("## Words\n")
    listed = json.loads(printed(capsys, "--output", "json"))
    assert {"topic": "spark", "about": readme.pages()["spark"].title} in listed["topics"]
    assert "errors" in listed["sections"]["names"]


def test_a_command_without_a_page_shows_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "produce").startswith("usage: lakelog produce")


def test_an_unknown_topic_is_an_error_that_names_what_there_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    close = printed(capsys, "stores", code=1)
    assert "there is no help on 'stores'; close to it are:\n  object-stores " in close
    none = printed(capsys, "xyzzy", code=1)
    for name in ("spark", "object-stores", "produce"):
        assert f" {name}" in none
    assert printed(capsys, "\x1b[31m", code=1).count("\x1b") == 0


def test_a_terminal_gets_it_laid_out_and_links_as_commands() -> None:
    shown = on_a_terminal("archive")
    assert max(map(len, shown.splitlines())) <= 80
    assert "](" not in shown
    assert "\x1b" not in shown  # colours alone were taken out: no links, no cursor
    words = " ".join(shown.split())
    assert "(lakelog help what-runs-leave-behind)" in words
    told = " ".join(on_a_terminal("reading-from-spark", columns=200).split())
    assert "typed columns (lakelog help typed-columns)" in told
    assert "redis, keyspace, cold where the log is" in told  # a row of a table
    assert "|" not in told


def test_links_of_a_terminal_name_topics_or_files() -> None:
    def told(text: str) -> str:
        return readme.without_links(text, "lakelog/spark/README.md", {"spark", "stores", "cold"})

    assert told("[a](../cold/README.md#stores)") == "a (`lakelog help stores`)"
    assert told("[a](../cold/README.md)") == "a (`lakelog help cold`)"
    assert told("[a](#stores)") == "a (`lakelog help stores`)"
    assert told("[a](../../conf/README.md#stores)") == "a (`conf/README.md` in the repository)"
    assert told("[a](../../README.md)") == "a (`README.md` in the repository)"
    assert told("[a](https://example.com/README.md)") == "a"
    assert told("![a](../a.png) b") == "a b"
    assert told("```\n[a](b)\n```") == "```\n[a](b)\n```"

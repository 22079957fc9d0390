"""Each command is offered by a line, and its file is imported once its name is typed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.cli import main as cli
from lakelog.cli.main import COMMANDS, FILES

FOLDER = Path(cli.__file__).parent

SHOW = """
import sys
from lakelog.cli import main
try:
    main.main(sys.argv[1:])
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name.startswith("lakelog.cli.")))
"""


def imported(*arguments: str) -> set[str]:
    """The files of commands that a command line imports."""
    command = [sys.executable, "-c", SHOW, *arguments]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    files = {name.rpartition(".")[2] for name in told.splitlines()[-1].split()}
    return files & {FILES.get(name, name) for name in COMMANDS}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_imports_no_command(arguments):
    assert imported(*arguments) == set()


def test_a_command_imports_its_own_file():
    assert imported("share-groups", "--help") == {"groups"}


def test_every_command_is_there_by_its_name(capsys):
    for name in COMMANDS:
        with pytest.raises(SystemExit) as exit_:
            cli.parser().parse_args([name, "--help"])
        assert exit_.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: lakelog {name} ")


def test_every_file_that_has_a_command_is_offered():
    offered = {
        name.replace("_", "-"): path.stem
        for path in FOLDER.glob("*.py")
        for name in re.findall(r"^def add_(\w+)\(offer: Offer\)", path.read_text(), re.MULTILINE)
    }
    assert offered == {name: FILES.get(name, name) for name in COMMANDS}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["consume", "orders", "--bogus"], "lakelog consume"),
        (["--dir", "log", "consume", "orders", "more"], "lakelog consume"),
        (["topics", "create", "orders", "--bogus"], "lakelog topics create"),
        (["grep", "text", "--bogus", "orders"], "lakelog grep"),
        (["--bogus"], "lakelog"),
    ],
)
def test_what_no_command_has_is_told_by_the_one_that_was_asked(arguments, named, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2
    said, where = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{named}: unrecognized arguments: ")
    assert where == f"`{named} --help` shows how it is used"


def test_grep_misses_its_text_alone(capsys):
    with pytest.raises(SystemExit):
        cli.main(["grep"])
    assert "grep: the following arguments are required: TEXT\n" in capsys.readouterr().err


def test_an_unknown_command_is_told_which_there_are(capsys):
    with pytest.raises(SystemExit):
        cli.main(["compact"])
    told = capsys.readouterr().err
    assert "'compact'" in told
    assert all(repr(name) in told for name in COMMANDS)

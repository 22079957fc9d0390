"""The README shows what happens: its Python runs here, its commands are those of the parser."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lakelog import LakelogError, errors
from lakelog.cli import main as cli
from lakelog.testing.object_store import S3Server

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


class AnyNumbers(doctest.OutputChecker):
    """Numbers of the demo's log vary from run to run: a flight without a tail number goes to
    whichever partition is next. Everything else must match.
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (re.sub(r"\d[\d,]*", "N", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


def quarantine_commands() -> list[str]:
    section = README.split("## Quarantine\n")[1].split("\n## ")[0]
    return section.split("```")[1].strip().splitlines()


def run_section(
    heading: str,
    checker: doctest.OutputChecker | None = None,
    *,
    places: Mapping[str, str] | None = None,
    **names: object,
) -> None:
    """Run what it shows; `places` are what stands in the code, and what it is here."""
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    for shown, here in (places or {}).items():
        assert shown in code
        code = code.replace(shown, here)
    test = doctest.DocTestParser().get_doctest(code, names, heading, "README.md", 0)
    assert len(test.examples) > 5
    said: list[str] = []
    runner = doctest.DocTestRunner(checker, verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_fifteen_lines_print_what_they_show(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section("Fifteen lines of Python")


def test_a_log_in_an_object_store_is_what_it_shows(
    s3_server: S3Server, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3_SECRET", "a secret word")
    places = {"redis://localhost:6379": redis_url, "http://localhost:9000": s3_server.url}
    run_section("Object stores", places=places)


def test_a_log_without_redis_is_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section("Without Redis")


def test_a_cleanup_does_what_it_shows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section("Cleanup")


def test_a_quarantine_lets_all_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section("Quarantine")


@pytest.mark.parametrize("line", quarantine_commands())
def test_a_command_of_the_quarantine_is_one(line: str) -> None:
    assert callable(cli.parser().parse_args(shlex.split(line)[1:]).run)


def test_the_explorer_gives_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_section("Explore")


def test_a_job_run_leaves_what_it_shows() -> None:
    run_section("Notebooks")


def test_it_names_every_notebook_with_its_own_parameters() -> None:
    section = README.split("## Notebooks\n")[1].split("\n## ")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| .+ \| .* \| (.+) \|$", section, re.MULTILINE))
    common = set(re.findall(r"`(\w+)`", section.split("All but the first also take")[1][:200]))
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert [*shown] == [notebook.stem for notebook in notebooks]
    for notebook in notebooks:
        text = "".join(json.loads(notebook.read_text("utf-8"))["cells"][0]["source"])
        taken = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        own = set(re.findall(r"`(\w+)`", shown[notebook.stem]))
        assert taken - (common - own) == own, notebook.stem


def test_typed_columns_are_what_it_shows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section("Typed columns")


def test_spark_does_what_it_shows(spark: Any, redis_url: str, tmp_path: Path) -> None:
    run_section("On Spark", redis_url=redis_url, folder=tmp_path)


def test_tables_by_name_are_what_it_shows(spark: Any, redis_url: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE SCHEMA logs LOCATION '{tmp_path}/logs'")
    run_section("Tables by name", redis_url=redis_url, folder=tmp_path)
    spark.sql("DROP SCHEMA logs CASCADE")


def test_the_sizing_is_what_it_shows() -> None:
    run_section("On Databricks")


def test_the_demo_prints_what_it_shows_and_its_data_can_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lakelog.cli.main",
            "demo",
            "--dir",
            "flights",
            "--engine",
            "inline",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = README.split("```\n336,776 flights")[1].split("```")[0]
    printed = done.stdout.split("336,776 flights")[1]
    assert words(shown) == words(printed.split("The log lies in")[0].split("Nothing was kept")[0])
    run_section("A look-up in two steps", AnyNumbers())


def words(text: str) -> list[str]:
    """What the demo says, without its numbers, times, tail numbers and rules."""
    text = text.split("Nothing was kept")[0]
    text = re.sub(r"[0-9a-f]{16}…", " ", text)  # the hash
    text = re.sub(r"\b[N\d][\w:+.,-]*\d\w*\b|[\d,.]+|─+|[\[\])]", " ", text)
    return text.split()


def commands() -> list[list[str]]:
    section = README.split("## On the command line\n")[1].split("```")[1]
    return [re.split(r"\s{2,}| < ", line)[0].split()[1:] for line in section.strip().splitlines()]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_a_command_it_shows_is_one(command: list[str]) -> None:
    if "--help" in command:
        with pytest.raises(SystemExit) as exit_:
            cli.main(command)
        assert exit_.value.code == 0
    else:
        assert callable(cli.parser().parse_args(command).run)


def test_ci_runs_the_test_command_it_shows() -> None:
    shown = README.split("## Tests\n")[1].split("```")[1].strip()
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    steps = [shlex.split(step) for step in shown.split("&&")]
    lines = [shlex.split(line, comments=True) for line in run.splitlines()]
    for step in steps:
        assert any([word for word in line if word != "--quiet"] == step for line in lines), step


def test_it_names_every_folder() -> None:
    section = README.split("## What stands where\n")[1].split("```")[1]
    for folder in sorted((ROOT / "lakelog").iterdir()):
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"{folder.name}/" in section, folder.name


def test_every_error_is_in_the_table_and_says_whether_it_is_retriable():
    section = README.split("## Errors\n")[1].split("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \| (yes|) ?\| .+ \|$", section, re.MULTILINE)
    public = {
        name: error.retriable
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, LakelogError) and error is not LakelogError
    }
    assert {name: bool(retriable) for name, retriable in told} == public
    assert len(told) == len(public)

"""``--dir``: one that is mistyped, that nobody uses, or whose disk takes nothing."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.errors import InvalidArgumentError
from lakelog.hot.embedded.redis_server import EmbeddedRedis
from tests.support.command_line import running


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], check=False)
    if made.returncode:
        pytest.skip("this user may mount nothing")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def log(disk: Path) -> Path:
    """A log with three archived records and one that is in Redis alone."""
    with Lakelog.embedded(disk / "log", engine="inline") as lake:
        lake.topics.create("t", 1, {"retention.ms": -1})
        for values, archive in ((("a", "b", "c"), True), (("d",), False)):
            with lake.producer() as producer:
                for value in values:
                    producer.send("t", value)
            if archive:
                lake.archive("t")
    return disk / "log"


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        for size_bytes in (2**20, 2**12, 1):
            try:
                while True:
                    file.write(b"x" * size_bytes)
            except OSError:
                pass


def take_nothing(disk: Path, kind: str) -> None:
    if kind == "full":
        fill(disk)
    else:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def lakelog(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "lakelog", "--engine", "inline", *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        check=False,
    )
    assert not re.search("Traceback|panicked", done.stderr)
    return done.returncode, done.stdout, done.stderr


CONSUME = ("consume", "t", "-f", "%s ")


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_reading_goes_on_from_cold_where_the_disk_takes_nothing(
    log: Path, disk: Path, kind: str
) -> None:
    take_nothing(disk, kind)
    code, shown, said = lakelog("--dir", str(log), *CONSUME)
    assert (code, shown) == (0, "a b c ")
    (line,) = said.splitlines()
    assert line.startswith(f"the disk of {log} takes nothing (")
    assert line.endswith("so its Redis cannot start: the log ends where it is archived")
    code, shown, said = lakelog("--dir", str(log), "produce", "t", stdin="e\n")
    assert (code, shown) == (1, "")
    assert len(said.splitlines()) == 2
    assert ("no space left" if kind == "full" else "read-only") in said
    assert "Make room" in said


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_cold_root_that_takes_nothing_is_said_in_a_line(
    disk: Path, redis_url: str, kind: str
) -> None:
    place = ("--redis", redis_url, "--cold", str(disk / "cold"))
    assert lakelog(*place, "topics", "create", "t")[0] == 0
    assert lakelog(*place, "produce", "t", stdin="a\n")[0] == 0
    assert lakelog(*place, "archive")[0] == 0
    assert lakelog(*place, "produce", "t", stdin="b\n")[0] == 0
    take_nothing(disk, kind)
    for command, wanted in (
        (["archive"], 1),
        (["topics", "create", "more"], 0),
        (["topics", "delete", "t"], 0),
    ):
        code, _, said = lakelog(*place, *command)
        assert code == wanted
        (line,) = [one for one in said.splitlines() if "is not in the list of runs" in one]
        assert f"the run of {shlex.join(command[:2])} is not" in line
        assert ("No space left" if kind == "full" else "Read-only file system") in line
        assert line.count("Check that") == 1, line
    assert "t is deleted, but its table does not say so" in said
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    (disk / "filler").unlink(missing_ok=True)
    code, shown, said = lakelog(*place, "topics", "undelete", "t")
    assert (code, said) == (0, "")
    assert lakelog(*place, "archive")[0] == 0
    code, shown, _ = lakelog(*place, "--output", "json", "history")
    assert [run["job"] for run in json.loads(shown)] == [
        *("topics create", "archive", "topics undelete", "archive"),
    ]


def test_nothing_is_lost_when_the_disk_fills_and_is_made_free(log: Path, disk: Path) -> None:
    with Lakelog.embedded(log, engine="inline"):
        fill(disk)
        # The Redis that runs can still be read, whatever it says to a ping.
        code, shown, said = lakelog("--dir", str(log), *CONSUME)
        assert (code, shown) == (0, "a b c d "), said
        (disk / "filler").unlink()
    assert lakelog("--dir", str(log), *CONSUME)[:2] == (0, "a b c d ")


def test_a_mistyped_directory_is_an_error_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my lgo"
    for command in (["consume", "t"], ["status"], ["topics", "list"], ["produce", "t"]):
        assert cli.main(["--dir", str(folder), *command]) == 1
        assert capsys.readouterr().err == (
            f"lakelog: there is no log in {folder}: `lakelog --dir '{folder}' topics create NAME` "
            "makes one\n"
        )
    cli.main(["--dir", str(folder), "--output", "json", "doctor"])
    assert "there is no log in" in capsys.readouterr().out
    assert not folder.exists()


def test_a_directory_given_as_the_cold_root_is_told_where_its_tables_lie(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "log"
    with Lakelog.embedded(folder, engine="inline") as lake:
        lake.topics.create("t")
        with lake.producer() as producer:
            producer.send("t", "v")
        lake.archive("t")
    for command in (["consume", "t"], ["status"], ["cleanup", "plan"], ["sql", "from t"]):
        assert cli.main(["--cold", str(folder), *command]) == 1
        said = capsys.readouterr().err
        assert f"whose tables lie in {folder}/cold" in said
        assert f"--dir {folder}" in said
    with pytest.raises(InvalidArgumentError, match=r"Lakelog\.embedded"):
        Lakelog.connect(None, folder)
    assert {path.name for path in folder.iterdir()} == {"cold", "redis"}
    assert cli.main(["--cold", f"{folder}/cold", "consume", "t"]) == 0


def test_a_directory_that_nobody_uses_is_not_paused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--dir", str(tmp_path / "log"), "--engine", "inline"]
    assert cli.main([*place, "topics", "create", "t"]) == 0
    for verb in ("pause", "resume"):
        assert cli.main([*place, "hot", verb]) == 1
        assert f"so there is no Redis to {verb}" in capsys.readouterr().err
    assert not EmbeddedRedis(tmp_path / "log" / "redis").is_used()
    with Lakelog.embedded(tmp_path / "log", engine="inline"):
        assert cli.main([*place, "hot", "pause"]) == 0
        assert cli.main([*place, "hot", "resume"]) == 0


def test_status_and_doctor_say_how_much_room_there_is(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--dir", str(log), "--engine", "inline", "--output", "json"]
    assert cli.main([*place, "status"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["disks"]
    assert row["disk"] == str(log)
    assert 0 < row["free_bytes"] < row["size_bytes"] == 24 * 2**20
    cli.main([*place, "doctor"])
    (row,) = [row for row in json.loads(capsys.readouterr().out) if row["what"] == "disk"]
    assert row["state"] == "risky"
    assert row["found"].endswith("MiB free of 24.0 MiB")


def test_a_gateway_makes_the_log_that_it_serves(tmp_path: Path) -> None:
    place = ["--dir", str(tmp_path / "log"), "--engine", "inline"]
    with running(*place, "gateway", "--listen", "127.0.0.1:0") as process:
        assert process.stderr is not None
        assert "bootstrap.servers=127.0.0.1:" in process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert (tmp_path / "log" / "redis").is_dir()

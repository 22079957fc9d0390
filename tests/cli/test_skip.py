"""`lakelog skip`, as one types it."""

from __future__ import annotations

import json

import pytest
import redis

from lakelog import Lakelog
from lakelog.cli import main as cli


@pytest.fixture
def deleted(redis_url, tmp_path, monkeypatch):
    """A log of three entries, the second of which somebody deleted; gives its keyword options."""
    monkeypatch.setenv("LAKELOG_REDIS", redis_url)
    monkeypatch.setenv("LAKELOG_COLD", str(tmp_path / "cold"))
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        log.topics.create("orders", 1)
        for order in range(3):
            with log.producer() as producer:
                producer.send("orders", f"order {order}")
    with redis.Redis.from_url(redis_url) as client:
        client.xdel("lakelog:stream:orders:0", "1-1")


def run(capsys, *arguments):
    code = cli.main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_that_the_error_names_frees_the_partition(
    deleted, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, _, error = run(capsys, "archive", "orders")
    assert code == 1
    assert "lakelog skip add orders -p 0 --entry 1-1" in error

    add = ("skip", "add", "orders", "-p", "0", "--entry", "1-1")
    code, said, _ = run(capsys, *add, "--dry-run")
    assert code == 0
    assert "would be skipped" in said
    assert "(its offsets 1..1" in said
    assert run(capsys, "skip", "list", "orders")[1] == "nothing was skipped\n"
    code, said, _ = run(capsys, *add, "--reason", "deleted by hand")
    assert code == 0
    saved = tmp_path / "orders-0-1-1.skipped.json"
    assert f"entry 1-1 is skipped, and its bytes saved to {saved}" in said
    assert json.loads(saved.read_text())["reason"] == "deleted by hand"

    code, said, _ = run(capsys, "skip", "list", "orders", "--output", "json")
    (row,) = json.loads(said)
    assert (row["tier"], row["id"], row["offsets"], row["reason"], row["saved_to"]) == (
        "hot",
        "1-1",
        "1..1",
        "deleted by hand",
        str(saved),
    )
    assert "deleted by hand" in run(capsys, "skip", "list", "orders")[1]
    assert run(capsys, "archive", "orders")[0] == 0
    code, said, _ = run(capsys, "consume", "orders", "--from=earliest")
    assert "order 0" in said
    assert "order 2" in said
    code, said, _ = run(capsys, "status", "orders")
    assert code == 0
    assert "1..1" in said

"""`lakelog quarantine`, as one types it."""

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


def test_the_command_that_the_error_names_frees_the_partition(deleted, capsys):
    code, _, error = run(capsys, "archive", "orders")
    assert code == 1
    assert "lakelog quarantine add orders -p 0 --entry 1-1" in error

    add = ("quarantine", "add", "orders", "-p", "0", "--entry", "1-1")
    code, said, _ = run(capsys, *add, "--dry-run")
    assert code == 0
    assert "would go into quarantine (its offsets 1..1" in said
    assert run(capsys, "quarantine", "list", "orders")[1] == "nothing lies in quarantine\n"
    code, said, _ = run(capsys, *add, "--reason", "deleted by hand")
    assert code == 0
    assert "entry 1-1 is in quarantine" in said

    code, said, _ = run(capsys, "quarantine", "list", "orders", "--output", "json")
    (row,) = json.loads(said)
    assert (row["tier"], row["id"], row["offsets"], row["reason"]) == (
        "hot",
        "1-1",
        "1..1",
        "deleted by hand",
    )
    assert run(capsys, "archive", "orders")[0] == 0
    code, said, _ = run(capsys, "consume", "orders", "--from=earliest")
    assert "order 0" in said
    assert "order 2" in said
    code, _, error = run(capsys, "quarantine", "release", "orders", "-p", "0", "--entry", "1-1")
    assert code == 1
    assert "the archive has gone past it" in error
    code, said, _ = run(capsys, "status", "orders")
    assert code == 0
    assert "1..1" in said

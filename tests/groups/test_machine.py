"""Anything may happen to a group, and it does what the model does; each named defect is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from group_machine import Differs, GroupMachine
from group_mutants import MUTANTS, mutated
from machine_run import run

from lakelog.hot.connection import connect
from tests.support.servers import RedisServer


@contextmanager
def group_machine(directory: Path) -> Iterator[type[GroupMachine]]:
    server = RedisServer(directory / "redis", {"appendonly": "no", "save": ""}).start()
    servers = connect(server.url)
    try:
        yield type("Machine", (GroupMachine,), {"server": server, "servers": servers})
    finally:
        servers.close()
        server.kill()


def test_a_group_does_what_the_model_does(tmp_path: Path) -> None:
    with group_machine(tmp_path) as machine:
        run(machine, 60, 50)


@pytest.mark.slow
def test_a_group_does_what_the_model_does_for_long(tmp_path: Path) -> None:
    with group_machine(tmp_path) as machine:
        run(machine, 2_000, 80)


#: These are looked for each time; the others when asked for.
QUICK = {"no generation check", "a round that keeps its generation"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in MUTANTS],
)
def test_the_machine_notices(name: str, tmp_path: Path) -> None:
    with mutated(*MUTANTS[name]), group_machine(tmp_path) as machine, pytest.raises(Differs):
        run(machine, 150, 50, shrink=False)

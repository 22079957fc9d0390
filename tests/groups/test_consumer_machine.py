"""Members by Kafka's consumer protocol may do anything, and share as they must; each named defect
of the script is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from consumer_machine import ConsumerMachine
from machine_run import run, scripts_changed

from lakelog import Lakelog
from tests.support.servers import RedisServer


@contextmanager
def consumer_machine(directory: Path) -> Iterator[type[ConsumerMachine]]:
    server = RedisServer(directory / "redis", {"appendonly": "no", "save": ""}).start()
    lake = Lakelog.connect(server.url)
    try:
        yield type("Machine", (ConsumerMachine,), {"server": server, "lake": lake})
    finally:
        lake.close()
        server.kill()


def test_members_share_whatever_happens(tmp_path: Path) -> None:
    with consumer_machine(tmp_path) as machine:
        run(machine, 25, 40)


@pytest.mark.slow
def test_members_share_whatever_happens_for_long(tmp_path: Path) -> None:
    with consumer_machine(tmp_path) as machine:
        run(machine, 500, 80)


DEFECTS = {
    "gives what another reads": ("if wanted[partition] and others[partition]", "if false"),
    "does not wait for what is given up": ("if owns_any(gone) and", "if false and"),
    "forgets what is to be given up": ("{ o.assigned, o.revoking }", "{ o.assigned }"),
    "takes no answer for giving up": ("or not said.owned and #partitions > 0", "or false"),
    "never hears that it is given up": (
        "m.state == UNREVOKED and owns_any(m.revoking)",
        "m.state == UNREVOKED",
    ),
    "waits forever for what was free": ("is_waiting and UNRELEASED or", ""),
    "loses the target of who comes back": ("if target then", "if false then"),
    "does not see new partitions": ("not has_looked and g.topics ~= topics", "false"),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_of_the_script_is_noticed(tmp_path: Path, defect: str) -> None:
    old, new = DEFECTS[defect]
    with (
        scripts_changed(lambda name: name == "groups/consumer_heartbeat", {old: new}),
        consumer_machine(tmp_path) as machine,
        pytest.raises(AssertionError),
    ):
        run(machine, 200, 50, shrink=False)

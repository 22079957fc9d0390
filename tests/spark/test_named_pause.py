"""By name too, whoever stands still at any step costs the log nothing.

The one who is held up is a process with a Spark of its own, so its tasks are held up as well.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from select import select
from typing import Any

import pytest
from named_paused import DONE, NamedParty
from paused import SETTINGS, Party, Producing, go_on

from lakelog import failpoints
from lakelog.config import HOUR_MS
from lakelog.failpoints import Pause
from lakelog.hot.hot_log import HotLog
from lakelog.testing.unity_catalog import UnityCatalogServer

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("named_paused.py")

#: Steps with the files of a table at a path. By name they are Spark's.
OF_FILES = {"cold.after_check", "cold.after_files", "cold.after_list", "cold.before_delete"}
STEPS = [
    (party, name)
    for party in ("archive", "cleanup")
    for name in failpoints.NAMES
    if name.startswith((f"{party}.", "cold.")) and name not in OF_FILES
]


class Held:
    """The process: it stops at each step whose folder is there."""

    def __init__(self, folder: Path, conf: Mapping[str, str]) -> None:
        self.folder = folder
        steps = {name for _, name in STEPS}
        armed = ",".join(f"{name}=pause:{folder / name}" for name in steps)
        wanted = {"conf": {"spark.sql.warehouse.dir": str(folder / "warehouse"), **conf}}
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(wanted)],
            env={**os.environ, failpoints.ENVIRONMENT_VARIABLE: armed},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that the JVM that it starts is killed with it
        )

    def begin(self, step: str, **wanted: str) -> Pause:
        """Have it work, up to a step."""
        pause = Pause(self.folder / step)
        shutil.rmtree(pause.folder, ignore_errors=True)
        pause.folder.mkdir()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(wanted) + "\n")
        self.process.stdin.flush()
        return pause

    def has_ended(self) -> bool:
        return bool(select([self.process.stdout], [], [], 0)[0])  # also where it is killed

    def end(self) -> str:
        """What went wrong; empty: nothing."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(DONE):
                return str(json.loads(line.removeprefix(DONE)))
        return "the process ended"

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture(scope="module")
def held(
    tmp_path_factory: pytest.TempPathFactory, unity_server: UnityCatalogServer | None
) -> Iterator[Held]:
    conf = {} if unity_server is None else unity_server.spark_conf()
    process = Held(tmp_path_factory.mktemp("held"), conf)
    yield process
    process.kill()


@pytest.fixture
def make_party(redis_url: str, spark: Any, schema: str) -> Iterator[Callable[[], Party]]:
    """Each call opens the one log anew, as another process would."""
    hot = HotLog.connect(redis_url)
    hot.topics().create("orders", 1, SETTINGS)
    hot.close()
    opened: list[Party] = []

    def make() -> Party:
        opened.append(NamedParty(redis_url, schema, "orders", spark))
        return opened[-1]

    yield make
    for party in opened:
        party.close()


@pytest.mark.parametrize(("mode", "step"), STEPS)
def test_who_is_paused_by_name_while_all_others_go_on_costs_nothing(
    make_party, held, redis_url, schema, tmp_path, mode, step
):
    party = make_party()
    producing = Producing(party)
    producing.append(100, age_ms=2 * HOUR_MS)
    for _ in range(3):
        party.archiver.run_once()
        producing.append(30)
    folder = tmp_path / schema.rpartition(".")[2]
    wanted = {"url": redis_url, "schema": schema, "folder": str(folder), "topic": "orders"}
    pause = held.begin(step, mode=mode, **wanted)
    assert pause.wait_reached(held.has_ended), held.end()

    go_on(party, producing)
    pause.release()

    assert held.end() == ""
    for reader in (party, make_party()):
        producing.check(reader)
    go_on(make_party(), producing)

"""Another process that works on a log: killed at a step, or held up there until it may go on."""

from __future__ import annotations

import json
import multiprocessing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from lakelog import Lakelog
from lakelog.base.failpoints import Pause, armed, exit_process
from lakelog.testing.eventually import LIVENESS_S

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

#: Its processes begin with what is imported here, so that each starts at once.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "lakelog.lakelog",
        "lakelog.archive.archiver",
        "lakelog.cleanup.cleanup",
        "lakelog.cold.by_path.segment_writer",
        "lakelog.operate.erasure.erase",
    ]
)


class Beside:
    """One run in a process of its own.

    Args:
        place: the URL of Redis and the cold root.
        folder: an empty one, of this run alone.
        work: ``erase`` and a key, ``archive``, or a step of a cleanup.
        step: where it is killed, or held up, and and on which of its passes there.
    """

    def __init__(
        self,
        place: tuple[str, str],
        folder: Path,
        topic: str,
        work: tuple[str, bytes],
        step: tuple[str, int],
        *,
        dies: bool,
    ) -> None:
        self._folder = folder
        self._pause = Pause(folder)
        self._process: ForkServerProcess = _SERVER.Process(
            target=_run, args=(place, folder, topic, work, step, dies)
        )
        self._process.start()
        if not dies:
            self._pause.wait_reached(lambda: not self._process.is_alive())

    def end(self) -> list[str]:
        """Have it go on, and wait for its end; what an erasure says that it did not reach."""
        (self._folder / "go").touch()
        self._process.join(LIVENESS_S)
        said = self._folder / "said.json"
        assert self._process.exitcode in (0, 137)
        return json.loads(said.read_text()) if said.exists() else []


def _run(
    place: tuple[str, str],
    folder: Path,
    topic: str,
    work: tuple[str, bytes],
    step: tuple[str, int],
    dies: bool,
) -> None:
    url, root = place
    name, times = step
    passes = count(1)

    def pass_by() -> None:
        if next(passes) == times:
            if dies:
                exit_process()
            Pause(folder)()

    with Lakelog.connect(url, root, engine="inline") as lake:
        with armed(name, pass_by):
            said = work_on(lake, topic, *work)
        (folder / "said.json").write_text(json.dumps(said))


def work_on(lake: Lakelog, topic: str, what: str, key: bytes) -> list[str]:
    """Does one piece of work; what an erasure says that it did not reach."""
    if what == "erase":
        return list(lake.erase(topic, key).beyond)
    if what == "archive":
        lake.archive(topic)
    else:
        lake.cleanup(topic, steps=[what])
    return []

"""A Voilà that shows one notebook, for one test module."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_lab import TIMEOUT_S

from lakelog.base.back_off import POLL, wait_until
from tests.support.servers import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Voila:
    """Runs a notebook for each page that is opened, and shows its outputs alone.

    Args:
        home: what Jupyter writes; its log too.
        notebook: what to show.
        environment: what its kernels find besides this process's variables.
    """

    def __init__(self, home: Path, notebook: Path, environment: dict[str, str]) -> None:
        self._log = home / "voila.log"
        self._port = free_port()  # it says no other than it was given
        self._url = f"http://127.0.0.1:{self._port}/"
        home.mkdir(parents=True, exist_ok=True)
        own = {name: str(home / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
        own["JUPYTER_DATA_DIR"] = str(home / "data")
        own["JUPYTER_RUNTIME_DIR"] = str(home / "runtime")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "voila", "--no-browser", "--Voila.ip=127.0.0.1"),
                    *(
                        f"--port={self._port}",
                        "--VoilaConfiguration.preheat_kernel=False",
                        str(notebook),
                    ),
                ],
                env={**os.environ, **own, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._await_answer()

    def open(self, page: Page) -> None:
        """Shows the notebook, once it has run to its end."""
        page.goto(self._url)

    def stop(self) -> None:
        """Ends the server and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await_answer(self) -> None:
        def is_over() -> bool:
            if self._process.poll() is not None:
                return True
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self._port)).close()
                return True
            return False

        if not wait_until("Voilà", is_over, POLL.within(TIMEOUT_S)) or self._process.poll():
            self.stop()
            raise RuntimeError(f"no Voilà:\n{self._log.read_text()[-4000:]}")

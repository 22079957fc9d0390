"""A JupyterLab for one test module."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lakelog.base.back_off import POLL, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

TIMEOUT_S = 90.0  # a machine under load starts JupyterLab in ten seconds or two

#: A prompt says [*] from when its cell is to run until it has; an error ends the run.
_ALL_RAN = """() => {
  const said = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(
    prompt => prompt.textContent);
  return said.some(text => /\\d/.test(text)) && !said.some(text => text.includes('*'));
}"""


class JupyterLab:
    """A JupyterLab of its own: a free loopback port, a token, and no settings of the user's.

    Args:
        home: what JupyterLab writes beside the notebooks; its log too.
        folder: where the notebooks lie.
        environment: what its kernels find besides this process's variables.
    """

    def __init__(self, home: Path, folder: Path, environment: dict[str, str]) -> None:
        self.home, self.folder, self.environment = home, folder, environment
        self._token = secrets.token_hex(16)
        self._url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> JupyterLab:
        self.home.mkdir(parents=True, exist_ok=True)
        runtime = self.home / "runtime"
        own = {
            "JUPYTER_CONFIG_DIR": self.home / "config",
            "JUPYTER_DATA_DIR": self.home / "data",
            "JUPYTER_RUNTIME_DIR": runtime,
            "JUPYTERLAB_SETTINGS_DIR": self.home / "settings",
            "JUPYTERLAB_WORKSPACES_DIR": self.home / "workspaces",
            "IPYTHONDIR": self.home / "ipython",
        }
        # No news, so no box over the page that asks whether to fetch some.
        self.set("notification", fetchNews="false", checkForUpdates=False)
        with (self.home / "lab.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                    *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"),
                    f"--ServerApp.root_dir={self.folder}",
                    "--LabApp.extension_manager=readonly",  # the other one asks a package index
                ],
                env={
                    **os.environ,
                    **{name: str(path) for name, path in own.items()},
                    "JUPYTER_TOKEN": self._token,
                    **self.environment,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._url = self._await_url(runtime / f"jpserver-{self._process.pid}.json")
        return self

    def stop(self) -> None:
        """Ends the server and its kernels. Nothing happens if it is not running."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def set(self, plugin: str, **settings: object) -> None:
        """Settings of a plugin of JupyterLab's apputils, for pages that are opened from now on."""
        folder = self.home / "settings" / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{plugin}.jupyterlab-settings").write_text(json.dumps(settings))

    def open(self, page: Page, notebook: str) -> None:
        """Shows a notebook of the folder, with its kernel ready."""
        page.set_default_timeout(TIMEOUT_S * 1000)
        page.goto(f"{self._url}lab/tree/{notebook}?token={self._token}")
        # Before that, running a cell would ask for a kernel.
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()

    def run_all(self, page: Page) -> None:
        """Runs every cell of the notebook that is open, from the menu; returns when all have."""
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_function(_ALL_RAN)

    def _await_url(self, info: Path) -> str:
        url = ""

        def is_over() -> bool:
            nonlocal url
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                # Written when the port is open, but not in one go.
                url = str(json.loads(info.read_text())["url"])
            return bool(url) or self._process is None or self._process.poll() is not None

        if wait_until("JupyterLab", is_over, POLL.within(TIMEOUT_S)) and url:
            return url
        self.stop()
        raise RuntimeError(f"no JupyterLab:\n{(self.home / 'lab.log').read_text()[-4000:]}")


def write_notebook(path: Path, *cells: str) -> None:
    """A notebook of code cells, which was not run."""
    code = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [],
            "source": source.strip(),
        }
        for number, source in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": code,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook), "utf-8")

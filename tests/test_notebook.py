"""What is done ahead in a kernel of Jupyter's, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jupyter_client.manager import start_new_kernel

FIRST_LOOK = "pandas", "lakelog.explore.explorer.widget"
CONNECT = "import sys; from lakelog import Lakelog; lake = Lakelog.connect(None, {!r})"
WAIT = f"""
import time
until_s = time.monotonic() + 60
while not {{*{FIRST_LOOK}}} <= {{*sys.modules}} and time.monotonic() < until_s:
    time.sleep(0.1)
print({{*{FIRST_LOOK}}} <= {{*sys.modules}})
"""


def said(client: object, code: str) -> str:
    """What a cell prints."""
    texts: list[str] = []

    def heard(message: dict[str, dict[str, str]]) -> None:
        texts.append(message["content"].get("text", ""))

    client.execute_interactive(code, timeout=90, output_hook=heard)  # type: ignore[attr-defined]
    return "".join(texts)


def test_a_kernel_that_has_connected_imports_what_the_first_look_takes(tmp_path: Path) -> None:
    manager, client = start_new_kernel()
    try:
        assert said(client, CONNECT.format(str(tmp_path))) == ""
        assert said(client, WAIT) == "True\n"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_script_imports_what_it_asks_for(tmp_path: Path) -> None:
    ask = (
        f"; import time; time.sleep(1); print([one for one in {FIRST_LOOK} if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", CONNECT.format(str(tmp_path)) + ask],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"

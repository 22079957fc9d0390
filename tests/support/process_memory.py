"""What the kernel says of this process's memory. Linux alone."""

from __future__ import annotations

import re
from pathlib import Path


def status_bytes(name: str) -> int:
    """A line of ``/proc/self/status``: ``VmRSS`` is held now, ``VmHWM`` was held at most.

    Not `resource.getrusage`: its peak begins with what the process held that started this one.
    """
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024

"""Who runs this process, for what is written down of what was done."""

from __future__ import annotations

import getpass
import socket


def who() -> str:
    """``user@host``; a question mark for a user without a name, as in some containers."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = "?"
    return f"{user}@{socket.gethostname()}"

"""Whether a folder's files can be changed once written: a mounted object store may refuse it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_BEFORE, _AFTER = b"lakelog", b"lakeLOG"

#: File systems, by device, whose files can be.
_can_be: set[int] = set()


def can_be_changed(path: str) -> bool:
    """Whether what is written to a new file can be overwritten later. Tried once a file system.

    Args:
        path: of a file that is not there yet; nor is it afterwards.

    Raises:
        OSError: no file can be written there at all.
    """
    file = Path(path)
    device = file.parent.stat().st_dev
    if device in _can_be:
        return True
    try:
        file.write_bytes(_BEFORE)
        with suppress(OSError):
            with file.open("r+b") as opened:
                opened.seek(_BEFORE.index(b"log"))
                opened.write(b"LOG")
            if file.read_bytes() == _AFTER:
                _can_be.add(device)
                return True
        return False
    finally:
        with suppress(FileNotFoundError):
            file.unlink()

"""What an environment has installed, out of a file in pip's format of constraints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Pin(NamedTuple):
    name: str  # as packages are compared: lower case, dashes
    version: str
    moves: bool  # with lakelog comes another version


def pins(environment: str) -> list[Pin]:
    """Those of ``{environment}.txt``."""
    text = (HERE / f"{environment}.txt").read_text("utf-8")
    return [
        Pin(normal(found[1]), found[2], found[3] == "moves")
        for found in re.finditer(r"(?m)^([\w-]+)==([\w.]+)(?:  # (\w+).*)?$", text)
    ]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

"""What a user does with the explorer: finds a widget by its class, types, clicks, waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


def everything(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from everything(child)


class Hands:
    """On one explorer, by the DOM classes of its widgets."""

    def __init__(self, explorer: Any) -> None:
        self.explorer = explorer

    def find(self, name: str) -> Any:
        (found,) = (
            one for one in everything(self.explorer) if f"lakelog-{name}" in one._dom_classes
        )
        return found

    def click(self, name: str) -> None:
        """And waits for what comes of it."""
        self.find(name).click()
        self.explorer.wait()

    def type(self, name: str, value: Any) -> None:
        """Into a box, then Enter or another place, and waits for what comes of it."""
        self.find(name).value = value
        self.explorer.wait()

    def html(self, name: str) -> str:
        return str(self.find(name).value)

    def offsets(self) -> list[int]:
        """Of the rows of the table."""
        return [
            int(found) for found in re.findall(r'<tr [^>]*data-offset="(\d+)"', self.html("table"))
        ]

    def visible(self, name: str) -> bool:
        return bool(self.find(name).layout.display != "none")

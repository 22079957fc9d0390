"""What a notebook keeps of an explorer: a table that shows where the widget cannot.

A widget lives as long as its kernel. The cell that shows it has a second output, plain HTML, with
the page as it is now. Its style hides it as long as the widget of the same page is alive, and hides
the widget where it is not: after a reload without the kernel (JupyterLab would say "Error
displaying widget: model not found"), after a restart (its buttons would be dead), in what nbconvert
makes. GitHub drops the style and shows the table alone.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

from ...base.notebook import of_notebook
from .background import AnyThread

#: How long a page is shown before it is kept: leafing and following redraw a table several times.
_SETTLED_S = 1.0
_DEAD = "jupyter-widgets-disconnected"  # as ipywidgets 8 marks what has no kernel


class SavedOutput:
    """The second output of the cells that show an explorer.

    Args:
        css_class: the explorer's own class.
        table: the widget whose value is the page shown.
        page: gives that page, as HTML that needs neither style nor script, and as text.
        shown_by: displays it.
    """

    def __init__(
        self, css_class: str, table: Any, page: Callable[[], tuple[str, str]], shown_by: AnyThread
    ) -> None:
        self._css_class = css_class
        self._page = page
        self._shown_by = shown_by
        self._display_ids: list[str] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        table.observe(lambda _: self._later(), names="value")

    def show(self, bundle: dict[str, Any]) -> None:
        """Displays the widget, and below it what is kept.

        Args:
            bundle: the widget's, by mimetype. A Databricks notebook gets nothing else: it keeps
                outputs in frames of their own, where a style hides nothing.
        """
        from IPython.display import display

        if of_notebook("displayHTML") is not None:
            display(bundle, raw=True)  # type: ignore[no-untyped-call]  # IPython has no types for it
            return
        # The text is said once, by the second output.
        display({**bundle, "text/plain": "the explorer:"}, raw=True)  # type: ignore[no-untyped-call]
        display_id = f"lakelog-{uuid.uuid4().hex}"
        with self._lock:
            self._display_ids.append(display_id)  # first: rows that come from here on are written
        display(self._bundle(), raw=True, display_id=display_id)  # type: ignore[no-untyped-call]

    def write(self) -> None:
        """Keeps the page that is shown now."""
        from IPython.display import display

        with self._lock:
            self._timer = None
            display_ids = [*self._display_ids]
        kept = self._bundle()
        for display_id in display_ids:
            display(kept, raw=True, display_id=display_id, update=True)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Nothing is written any more."""
        with self._lock:
            self._display_ids.clear()
            if self._timer is not None:
                self._timer.cancel()

    def _later(self) -> None:
        with self._lock:
            if self._display_ids and self._timer is None:
                self._timer = threading.Timer(_SETTLED_S, self._shown_by, [self.write])
                self._timer.daemon = True
                self._timer.start()

    def _bundle(self) -> dict[str, str]:
        html, text = self._page()
        saved = f'<div class="ll-saved ll-saved-{self._css_class}">{html}</div>'
        return {"text/html": _style(self._css_class) + saved, "text/plain": text}


def _style(css_class: str) -> str:
    alive, saved = f".{css_class}:not(.{_DEAD})", f".ll-saved-{css_class}"
    output = ".jp-OutputArea-child"  # JupyterLab's, Voilà's and nbconvert's
    return (
        "<style>"
        f"body:has({alive}) {saved}, {output}:has({alive}) + {output}:has({saved}), "
        f"{output}:has(+ {output} {saved}):not(:has({alive})) {{ display: none !important; }} "
        f"{saved} {{ overflow-x: auto; }} "
        f"{saved} td, {saved} th {{ text-align: left !important; white-space: nowrap; "
        "vertical-align: top; padding: 1px 8px; } "
        f"{saved} tr[class] td:first-child {{ border-left: 4px solid #0173b2; }} "
        f"{saved} tr.ll-hot td:first-child {{ border-left-color: #de8f05; }} "
        f"{saved} tr.ll-both td:first-child {{ border-left-style: double; }}"
        "</style>"
    )

"""A plotly Figure that shows itself by its mimetype, with its table beside it."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

MIMETYPE = "application/vnd.plotly.v1+json"
#: Not "responsive": JupyterLab fits charts itself, and with it their height would be lost.
_CONFIG = {"displaylogo": False}


class Chart(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A figure, the table it was drawn from, and its message in a sentence.

    To plotly it is a Figure like any other. In a notebook it shows itself as a few KB of JSON,
    where plotly's own default would add all of plotly.js, and as a table for where that is not.
    """

    #: IPython asks for this first. It takes None for absent, and then asks for the bundle.
    _ipython_display_ = None

    def __init__(
        self,
        *args: Any,
        table: pa.Table | None = None,
        message: str = "",
        table_html: str = "",
        **more: Any,
    ):
        super().__init__(*args, **more)
        self._table = table
        self._message = message
        self._table_html = table_html

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
        found = drawing(self, self._message)
        return {**found, "text/html": self._table_html} if self._table_html else found

    @property
    def table(self) -> pa.Table | None:
        """What was drawn."""
        return self._table

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.to_dict(), self._table, self._message, self._table_html)


def drawing(figure: Any, message: str = "") -> dict[str, Any]:
    """What a front end chooses from: the drawing, and a sentence as text."""
    drawn = {**json.loads(figure.to_json()), "config": dict(_CONFIG)}
    return {MIMETYPE: drawn, "text/plain": message or "a plotly figure"}


def _again(figure: dict[str, Any], table: pa.Table, message: str, table_html: str) -> Chart:
    return Chart(figure, table=table, message=message, table_html=table_html)

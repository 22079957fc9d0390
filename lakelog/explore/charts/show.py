"""Showing a chart or a table in a notebook."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from ...base.notebook import of_notebook
from ...errors import InvalidArgumentError
from .plain_table import PlainTable


def show(shown: Any) -> None:
    """Displays a chart, or a table, as the output of a notebook's cell or inside a widgets' Output.

    A chart is sent as ``application/vnd.plotly.v1+json``, which JupyterLab and VS Code draw, with
    the first rows of its table (``text/html``) for what does not: GitHub, nbconvert. plotly.js
    itself is never sent. A Databricks notebook gets the drawing as HTML that loads plotly.js from
    the web. If another front end shows the table and you want the drawing, ``figure.show()`` lets
    plotly choose a way.

    Args:
        shown: what a function of `lakelog.explore.charts` gave, any other plotly Figure, or an
            Arrow table. Outside IPython its sentence is printed.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    data = _bundle(shown)
    if "IPython" not in sys.modules:  # plain Python would not draw it
        print(data["text/plain"])
        return
    from IPython.display import display

    display_html = of_notebook("displayHTML")
    if display_html is not None and not isinstance(shown, (pa.Table, PlainTable)):
        # Databricks' own function, since its notebooks draw plotly only from HTML.
        display_html(shown.to_html(include_plotlyjs="cdn", full_html=False))
        return
    display(data, raw=True)  # type: ignore[no-untyped-call]  # IPython has no types for it


def _bundle(shown: Any) -> dict[str, Any]:
    if isinstance(shown, pa.Table):
        shown = PlainTable(shown)
    if isinstance(shown, PlainTable):
        return {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
    if "plotly" in sys.modules:
        from plotly.graph_objects import Figure

        from .chart import Chart, bundle

        if isinstance(shown, Chart):
            return shown._repr_mimebundle_()
        if isinstance(shown, Figure):
            return bundle(shown)
    raise InvalidArgumentError(
        f"{type(shown).__name__} is neither a chart nor a table: pass what a function of "
        "lakelog.explore.charts gave, a plotly Figure or an Arrow table"
    )

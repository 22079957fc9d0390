"""Makes a chart of a table and its message; without plotly, a plain table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .plain_table import PlainTable

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def drawn(
    table: pa.Table, message: str, draw: Callable[[], tuple[list[Any], dict[str, Any]]]
) -> Figure:
    """The chart; a `PlainTable` where plotly is not installed.

    Args:
        message: what the chart says.
        draw: gives traces and layout, as plain values; not called without plotly.
    """
    try:
        from .chart import Chart
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "plotly":
            raise
        return PlainTable(table, message)
    traces, layout = draw()
    return Chart(data=traces, layout=layout, table=table, message=message)

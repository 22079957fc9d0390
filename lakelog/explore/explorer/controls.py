"""The explorer's widgets and their layout; `widget` says what they do."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ...typed_time import UTC
from .decode import FORMATS
from .scan import ScanLimit
from .style import CSS
from .view import DEFAULT_PAGE_RECORDS

#: The zones on offer; any other name of the zone database may be typed.
_ZONES = (
    UTC,
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
)
_PAGES = (20, 50, 100, 200, 500)
_MIB = 1 << 20


class Controls:
    """Holds the widgets, which are made once; each has a CSS class of its own."""

    def __init__(self) -> None:
        self.topic = _classed(widgets.Dropdown(description="topic"), "topic", "220px")
        self.partition = _classed(widgets.Dropdown(description="partition"), "partition", "120px")
        self.refresh = _button("↻", "refresh", "look for new topics, and read the page again")
        self.offset = _classed(
            widgets.IntText(value=0, description="offset", continuous_update=False),
            "offset",
            "165px",
        )
        self.slider = _classed(
            widgets.IntSlider(value=0, min=0, max=0, readout=False, continuous_update=False),
            "slider",
            "auto",  # the full width: the map below is drawn to its scale
        )
        self.map = _html("map")
        self.timestamp = _classed(
            widgets.Text(
                description="time",
                placeholder="2013-07-04 12:00 or 10 minutes ago",
                continuous_update=False,
            ),
            "timestamp",
            "290px",
        )
        self.zone = _classed(
            widgets.Combobox(
                value=UTC, options=_ZONES, ensure_option=False, continuous_update=False
            ),
            "zone",
            "150px",
        )
        self.taken = _html("taken")
        self.seek = _button("Seek", "seek", "go to the offset or the time, whichever changed last")
        self.earliest = _button("Earliest", "earliest", "the log start")
        self.earliest_local = _button(
            "Earliest local", "earliest-local", "the first offset that Redis holds"
        )
        self.latest = _button("Latest", "latest", "the last records")
        self.back = _button("◀ Back", "back", "the page before")
        self.forward = _button("Forward ▶", "forward", "the page after")
        self.page_records = _classed(
            widgets.Dropdown(
                options=sorted({*_PAGES, DEFAULT_PAGE_RECORDS}),
                value=DEFAULT_PAGE_RECORDS,
                description="rows",
            ),
            "page-records",
            "110px",
        )
        self.format = _classed(
            widgets.Dropdown(options=FORMATS, value=FORMATS[0], description="values as"),
            "format",
            "170px",
        )
        self.follow = _classed(
            widgets.ToggleButton(description="Follow", tooltip="show the tail as it grows"),
            "follow",
            "auto",
        )
        self.search = _classed(
            widgets.Text(
                placeholder='a text, or key = "N229JB" and value.dep_delay > 60',
                continuous_update=False,
            ),
            "search",
            "630px",
        )
        limit = ScanLimit()
        self.limit_records = _classed(
            widgets.IntText(value=limit.records, description="records ≤"), "limit-records", "160px"
        )
        self.limit_mib = _classed(
            widgets.IntText(value=limit.bytes // _MIB, description="MiB ≤"), "limit-mib", "110px"
        )
        self.scan = _button("Scan", "scan", "look for matches from the page on; empty boxes: all")
        self.stop = _button("Stop", "stop", "end the scan with what it has")
        self.stop.disabled = True
        self.clear = _button("Clear", "clear", "show all records again")
        self.progress = _html("progress")
        self.notes = _html("notes")
        self.table = _html("table")
        self.opened = _classed(widgets.Dropdown(description="record"), "opened", "230px")
        self.history = _button("History of its key", "history", "all versions, in both tiers")
        self.full = _classed(
            widgets.ToggleButton(description="In full", tooltip="long values too"), "full", "auto"
        )
        self.record = _html("record")
        self.segments = _classed(
            widgets.ToggleButton(
                description="Segments", tooltip="of this partition, in both tiers"
            ),
            "segments",
            "auto",
        )
        # It begins with one option: a list that gets its first options later shows none as chosen.
        self.segment = _classed(
            widgets.Dropdown(description="go to", options=[("–", -1)]), "segment", "auto"
        )
        self.segment_map = _classed(widgets.Output(), "segment-map")
        self.expression = _html("expression")
        self.error = _html("error")
        self.retry = _button("Retry", "retry", "ask again what failed")
        for widget in (self.retry, self.error, self.segment, self.segment_map):
            hide(widget)

    def rows(self) -> list[Any]:
        """The widgets from top to bottom."""
        return [
            widgets.HTML(CSS, layout=widgets.Layout(height="0px", margin="0px", overflow="hidden")),
            _row(
                self.topic,
                self.partition,
                self.refresh,
                self.offset,
                self.timestamp,
                self.zone,
                self.seek,
                self.taken,
            ),
            self.slider,
            self.map,
            _row(
                self.search,
                self.scan,
                self.stop,
                self.clear,
                self.limit_records,
                self.limit_mib,
            ),
            _row(
                self.earliest,
                self.earliest_local,
                self.back,
                self.forward,
                self.latest,
                self.follow,
                self.page_records,
                self.format,
                self.progress,
            ),
            self.notes,
            self.table,
            self.expression,
            _row(self.error, self.retry),
            _row(self.opened, self.full, self.history, self.segments, self.segment),
            self.record,
            self.segment_map,
        ]

    def all(self) -> list[Any]:
        return [one for one in vars(self).values() if isinstance(one, widgets.Widget)]


def hide(widget: Any) -> None:
    widget.layout.display = "none"


def unhide(widget: Any) -> None:
    widget.layout.display = None


def _classed(widget: Any, name: str, width: str | None = None) -> Any:
    widget.add_class(f"lakelog-{name}")
    if hasattr(getattr(widget, "style", None), "description_width"):
        widget.style.description_width = "initial"
    if width is not None:
        widget.layout.width = width
    return widget


def _html(name: str) -> Any:
    widget = widgets.HTML()
    widget.add_class(f"lakelog-{name}")
    return widget


def _button(text: str, name: str, tooltip: str) -> Any:
    button = widgets.Button(description=text, tooltip=tooltip)
    button.layout.width = "auto"
    button.add_class(f"lakelog-{name}")
    return button


def _row(*children: Any) -> Any:
    row = widgets.Box(children)
    row.layout.flex_flow = "row wrap"
    row.layout.align_items = "center"
    row.add_class("ll-row")
    return row

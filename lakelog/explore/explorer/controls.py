"""The explorer's widgets and their layout; `widget` says what they do."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ...values.typed_time import UTC
from .decode import FORMATS
from .reader_zone import ZONE_TELLER
from .shown_code import CODES, PYTHON
from .shown_files import FILES
from .style import CSS
from .table_html import AWAY, OVER
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

#: What lists hold beside partitions and records.
ALL, NONE = -1, "–"

#: The right end of the range below the picture.
CHOSEN_MOST = 1000


class Controls:
    """Holds the widgets, which are made once; each has a CSS class of its own."""

    def __init__(self) -> None:
        self._make_toolbar()
        self._make_picture()
        self._make_paging()
        self._make_secondary()
        self._make_page()
        for widget in (
            self.again,
            self.sending,
            self.new,
            self.retry,
            self.error,
            self.secondary,
            self.side,
        ):
            hide(widget)
        for widget in (
            *(self.segment, self.segment_map),
            *(self.pointer, self.picked, self.reader_zone, self.members, self.sort),
        ):
            hide(widget)

    def _make_toolbar(self) -> None:
        """Which topic, where, and what of it."""
        self.topic = _classed(widgets.Dropdown(), "topic", "160px")
        self.partition = _classed(widgets.Dropdown(), "partition", "150px")
        self.timestamp = _classed(
            widgets.Text(placeholder="go to a time: 2013-07-04 12:00", continuous_update=False),
            "timestamp",
            "205px",
        )
        self.taken = _html("taken")
        self.search = _classed(
            widgets.Text(
                placeholder='a text, or key = "N229JB" and value.dep_delay > 60',
                continuous_update=False,
            ),
            "search",
        )
        self.search.layout = widgets.Layout(flex="1 1 260px", min_width="180px", width="auto")
        self.find = _button("Search", "find", "in the partitions shown, in the time chosen")
        self.find.button_style = "primary"
        self.follow = _classed(
            widgets.ToggleButton(description="Follow", tooltip="show the tail as it grows"),
            "follow",
            "auto",
        )
        self.new = _button("", "new", "close the record, and show what came since")
        self.more = _classed(
            widgets.ToggleButton(description="⋯", tooltip="more controls"), "more", "auto"
        )

    def _make_picture(self) -> None:
        """When there are records; a range below chooses where nothing can be clicked."""
        self.picture = _html("picture")
        self.chosen = _classed(
            widgets.IntRangeSlider(
                value=(0, CHOSEN_MOST),
                min=0,
                max=CHOSEN_MOST,
                readout=False,
                continuous_update=False,
            ),
            "chosen",
            "auto",  # the full width: the picture above is as wide
        )
        self.chosen.tooltip = "the time to search"
        # The picture's own script sets it.
        self.picked = _classed(widgets.Text(continuous_update=False), "picked")
        self.told = _html("told")
        self.told.layout.flex = "1 1 300px"
        self.zoom = _button("Zoom in", "zoom", "show the chosen time in the picture")
        self.whole = _button("All time", "whole", "choose all the time there is")

    def _make_paging(self) -> None:
        """From page to page."""
        self.earliest = _button("Earliest", "earliest", "the log start")
        self.back = _button("◀ Back", "back", "the page before")
        self.forward = _button("Forward ▶", "forward", "the page after")
        self.latest = _button("Latest", "latest", "the last records")
        self.stop = _button("Stop", "stop", "end the search with what it has")
        self.stop.disabled = True
        self.progress = _html("progress")
        self.notes = _html("notes")
        # The table's own script sets it, while the tail is followed.
        self.pointer = _classed(widgets.Dropdown(options=[AWAY, OVER]), "pointer")

    def _make_secondary(self) -> None:
        """What is needed now and then."""
        self.refresh = _button("↻", "refresh", "look for new topics, and read the page again")
        self.offset = _classed(
            widgets.IntText(value=0, description="offset", continuous_update=False),
            "offset",
            "165px",
        )
        self.seek = _button("Seek", "seek", "go to the offset or the time, whichever changed last")
        self.earliest_local = _button(
            "Earliest local", "earliest-local", "the first offset that Redis holds"
        )
        self.clear = _button("Clear", "clear", "show all records again")
        self.zone = _classed(
            widgets.Combobox(
                value=UTC,
                options=_ZONES,
                description="zone",
                ensure_option=False,
                continuous_update=False,
            ),
            "zone",
            "190px",
        )
        # The page's own script sets it.
        self.reader_zone = _classed(widgets.Text(continuous_update=False), "reader-zone")
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
        self.members = _classed(
            widgets.SelectMultiple(rows=4, description="columns"), "members", "260px"
        )
        self.sort = _classed(
            widgets.Dropdown(description="sort by", options=[(NONE, None)]), "sort", "210px"
        )
        self.secondary = _row(
            *(self.refresh, self.offset, self.seek, self.earliest_local, self.clear),
            *(self.zone, self.page_records, self.format, self.segments, self.segment),
            *(self.members, self.sort),
        )
        self.secondary.add_class("lakelog-secondary")

    def _make_page(self) -> None:
        """The rows, and the record that is open beside them."""
        self.table = _html("table")
        self.table.layout = widgets.Layout(flex="999 1 520px", min_width="0")
        self.opened = _classed(
            # Its value is the row's name; that of a list's choice would be sent as a place in the
            # list, which names another row once the next page is drawn.
            widgets.Combobox(
                description="record", placeholder="partition:offset", continuous_update=False
            ),
            "opened",
            "180px",
        )
        self.columns = _classed(
            widgets.ToggleButton(
                description="Columns", tooltip="members of JSON values as columns; again: as it is"
            ),
            "columns",
            "auto",
        )
        self.history = _button("History of its key", "history", "all versions, in both tiers")
        self.full = _classed(
            widgets.ToggleButton(description="In full", tooltip="long values too"), "full", "auto"
        )
        self.record = _html("record")
        self._make_sending()
        buttons = _row(self.history, self.full, self.again)
        self.side = widgets.VBox([self.record, buttons, self.sending, self.sent])
        self.side.layout = widgets.Layout(flex="1 1 320px", min_width="0")
        self.side.add_class("lakelog-side")
        self.expression = _html("expression")
        self.expression.layout.flex = "1 1 400px"
        self.code = _classed(
            widgets.Dropdown(options=CODES, value=PYTHON, tooltip="the rows shown as"),
            "code",
            "135px",
        )
        self.export = _classed(
            widgets.Dropdown(
                options=[("export …", NONE), *((name, kind) for kind, name in FILES.items())]
            ),
            "export",
            "100px",
        )
        self.download = _html("download")
        self.error = _html("error")
        self.retry = _button("Retry", "retry", "ask again what failed")

    def _make_sending(self) -> None:
        """The open record, to be sent again by those who may."""
        self.again = _button("Send again …", "again", "append this record once more, or edited")
        self.send_topic = _classed(widgets.Dropdown(description="to"), "send-topic", "auto")
        self.send_key = _classed(widgets.Text(description="key"), "send-key", "auto")
        self.send_value = _classed(
            widgets.Textarea(description="value", rows=6), "send-value", "auto"
        )
        self.send = _button("Send", "send", "asks once more")
        self.send_not = _button("Cancel", "send-not", "send nothing")
        self.sending = widgets.VBox(
            [self.send_topic, self.send_key, self.send_value, _row(self.send, self.send_not)]
        )
        self.sending.add_class("lakelog-sending")
        self.sent = _html("sent")

    def rows(self) -> list[Any]:
        """The widgets from top to bottom."""
        page = widgets.Box([self.table, self.side])
        page.layout = widgets.Layout(flex_flow="row wrap", align_items="flex-start", width="auto")
        page.add_class("ll-page")
        toolbar = _row(
            *(self.topic, self.partition, self.timestamp, self.search),
            *(self.find, self.follow, self.new, self.more),
        )
        toolbar.add_class("ll-toolbar")
        return [
            widgets.HTML(CSS, layout=widgets.Layout(height="0px", margin="0px", overflow="hidden")),
            toolbar,
            self.secondary,
            self.picture,
            self.chosen,
            _row(self.told, self.zoom, self.whole),
            _row(
                *(self.earliest, self.back, self.forward, self.latest, self.opened, self.columns),
                *(self.taken, self.stop, self.progress),
            ),
            page,
            self.notes,
            _row(self.expression, self.code, self.export, self.download),
            _row(self.error, self.retry),
            self.segment_map,
            self.pointer,
            self.picked,
            self.reader_zone,
            widgets.HTML(
                ZONE_TELLER, layout=widgets.Layout(height="0px", margin="0px", overflow="hidden")
            ),
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

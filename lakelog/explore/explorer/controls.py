"""The explorer's widgets and their layout; `handlers` says what they do."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets

from ...values.typed_time import UTC
from .decode import FORMATS
from .rows import AWAY, OVER
from .shown_code import CODES, PYTHON
from .shown_files import FILES
from .style import CSS
from .view import DEFAULT_PAGE_RECORDS

#: What browsers call UTC.
UTC_NAMES = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/UCT", "Etc/GMT", "Etc/Zulu", "Etc/Universal"})

#: The box of that class hears the browser's zone, by its name in the zone database. It may come
#: onto the page later than the style.
_SCRIPT = escape(
    "var self = this, tries = 0; (function tell() { "
    "var root = self.closest('.lakelog-explorer'), "
    "told = root && root.querySelector('.lakelog-reader-zone input'); "
    "if (!told) { if (tries++ < 100) { setTimeout(tell, 100); } return; } "
    "var zone = Intl.DateTimeFormat().resolvedOptions().timeZone; "
    "if (zone && told.value !== zone) { told.value = zone; "
    "told.dispatchEvent(new Event('input', {bubbles: true})); "
    "told.dispatchEvent(new Event('change', {bubbles: true})); } })()"
)

#: A style that is without effect, but tells the zone once the page has loaded it.
ZONE_TELLER = f'<style onload="{_SCRIPT}">.lakelog-reader-zone {{ display: none; }}</style>'

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
        hide(self.again, self.sending, self.new, self.retry, self.error, self.secondary, self.side)
        hide(self.segment, self.segment_map, self.members, self.sort)
        hide(self.pointer, self.picked, self.reader_zone)  # scripts in the page's HTML set these

    def _make_toolbar(self) -> None:
        """Which topic, where, and what of it."""
        self.topic = _named("topic", widgets.Dropdown(), "160px")
        self.partition = _named("partition", widgets.Dropdown(), "150px")
        self.timestamp = _text("timestamp", "205px", placeholder="go to a time: 2013-07-04 12:00")
        self.taken = _html("taken")
        example = 'a text, or key = "N229JB" and value.dep_delay > 60'
        self.search = _text("search", placeholder=example)
        self.search.layout = widgets.Layout(flex="1 1 260px", min_width="180px", width="auto")
        self.find = _button("find", "Search", "in the partitions shown, in the time chosen")
        self.find.button_style = "primary"
        self.follow = _toggle("follow", "Follow", "show the tail as it grows")
        self.new = _button("new", "", "close the record, and show what came since")
        self.more = _toggle("more", "⋯", "more controls")

    def _make_picture(self) -> None:
        """When there are records; a range below chooses where nothing can be clicked."""
        self.picture = _html("picture")
        self.chosen = widgets.IntRangeSlider(
            value=(0, CHOSEN_MOST), max=CHOSEN_MOST, readout=False, continuous_update=False
        )
        _named("chosen", self.chosen, "auto")  # the full width: the picture above is as wide
        self.chosen.tooltip = "the time to search"
        self.picked = _text("picked")
        self.told = _html("told")
        self.told.layout.flex = "1 1 300px"
        self.zoom = _button("zoom", "Zoom in", "show the chosen time in the picture")
        self.whole = _button("whole", "All time", "choose all the time there is")

    def _make_paging(self) -> None:
        """From page to page."""
        self.earliest = _button("earliest", "Earliest", "the log start")
        self.back = _button("back", "◀ Back", "the page before")
        self.forward = _button("forward", "Forward ▶", "the page after")
        self.latest = _button("latest", "Latest", "the last records")
        self.stop = _button("stop", "Stop", "end the search with what it has")
        self.stop.disabled = True
        self.progress = _html("progress")
        self.notes = _html("notes")
        self.pointer = _named("pointer", widgets.Dropdown(options=[AWAY, OVER]))

    def _make_secondary(self) -> None:
        """What is needed now and then."""
        self.refresh = _button("refresh", "↻", "look for new topics, and read the page again")
        self.offset = widgets.IntText(value=0, description="offset", continuous_update=False)
        _named("offset", self.offset, "165px")
        self.seek = _button("seek", "Seek", "go to the offset or the time, whichever changed last")
        told = "the first offset that Redis holds"
        self.earliest_local = _button("earliest-local", "Earliest local", told)
        self.clear = _button("clear", "Clear", "show all records again")
        self.zone = _combobox("zone", "190px", value=UTC, options=_ZONES, ensure_option=False)
        self.reader_zone = _text("reader-zone")
        self.page_records = _dropdown("page-records", "rows", "110px", _PAGES, DEFAULT_PAGE_RECORDS)
        self.format = _dropdown("format", "values as", "170px", FORMATS, FORMATS[0])
        self.segments = _toggle("segments", "Segments", "of this partition, in both tiers")
        # It begins with one option: a list that gets its first options later shows none as chosen.
        self.segment = _dropdown("segment", "go to", "auto", [(NONE, -1)], -1)
        self.segment_map = _named("segment-map", widgets.Output())
        self.members = widgets.SelectMultiple(rows=4, description="columns")
        _named("members", self.members, "260px")
        self.sort = _dropdown("sort", "sort by", "210px", [(NONE, None)], None)
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
        # Its value is the row's name; that of a list's choice would be sent as a place in the list,
        # which names another row once the next page is drawn.
        self.opened = _combobox("opened", "180px", "record", placeholder="partition:offset")
        told = "members of JSON values as columns; again: as it is"
        self.columns = _toggle("columns", "Columns", told)
        self.history = _button("history", "History of its key", "all versions, in both tiers")
        self.full = _toggle("full", "In full", "long values too")
        self.record = _html("record")
        self._make_sending()
        buttons = _row(self.history, self.full, self.again)
        self.side = widgets.VBox([self.record, buttons, self.sending, self.sent])
        self.side.layout = widgets.Layout(flex="1 1 320px", min_width="0")
        self.side.add_class("lakelog-side")
        self.expression = _html("expression")
        self.expression.layout.flex = "1 1 400px"
        self.code = _dropdown("code", "", "135px", CODES, PYTHON)
        self.code.tooltip = "the rows shown as"
        kinds = [("export …", NONE), *((name, kind) for kind, name in FILES.items())]
        self.export = _dropdown("export", "", "100px", kinds, NONE)
        self.download = _html("download")
        self.error = _html("error")
        self.retry = _button("retry", "Retry", "ask again what failed")

    def _make_sending(self) -> None:
        """The open record, to be sent again by those who may."""
        self.again = _button("again", "Send again …", "append this record once more, or edited")
        self.send_topic = _named("send-topic", widgets.Dropdown(description="to"), "auto")
        self.send_key = _named("send-key", widgets.Text(description="key"), "auto")
        value = widgets.Textarea(description="value", rows=6)
        self.send_value = _named("send-value", value, "auto")
        self.send = _button("send", "Send", "asks once more")
        self.send_not = _button("send-not", "Cancel", "send nothing")
        buttons = _row(self.send, self.send_not)
        boxes = [self.send_topic, self.send_key, self.send_value, buttons]
        self.sending = _named("sending", widgets.VBox(boxes))
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
        style, zone_teller = (
            widgets.HTML(text, layout={"height": "0px", "margin": "0px", "overflow": "hidden"})
            for text in (CSS, ZONE_TELLER)
        )
        return [
            style,
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
            *(self.pointer, self.picked, self.reader_zone, zone_teller),
        ]

    def all(self) -> list[Any]:
        return [one for one in vars(self).values() if isinstance(one, widgets.Widget)]


def hide(*several: Any) -> None:
    for widget in several:
        widget.layout.display = "none"


def unhide(*several: Any) -> None:
    for widget in several:
        widget.layout.display = None


def _named(name: str, widget: Any, width: str | None = None) -> Any:
    widget.add_class(f"lakelog-{name}")
    if hasattr(getattr(widget, "style", None), "description_width"):
        widget.style.description_width = "initial"
    if width is not None:
        widget.layout.width = width
    return widget


def _html(name: str) -> Any:
    return _named(name, widgets.HTML())


def _text(name: str, width: str | None = None, *, placeholder: str = "") -> Any:
    """It tells what was typed by Enter, and when it is left."""
    return _named(name, widgets.Text(placeholder=placeholder, continuous_update=False), width)


def _combobox(name: str, width: str, description: str = "", **options: Any) -> Any:
    options = {"description": description or name, "continuous_update": False, **options}
    return _named(name, widgets.Combobox(**options), width)


def _dropdown(name: str, description: str, width: str, options: Any, value: Any) -> Any:
    box = widgets.Dropdown(options=options, value=value, description=description)
    return _named(name, box, width)


def _button(name: str, text: str, tooltip: str) -> Any:
    return _named(name, widgets.Button(description=text, tooltip=tooltip), "auto")


def _toggle(name: str, text: str, tooltip: str) -> Any:
    return _named(name, widgets.ToggleButton(description=text, tooltip=tooltip), "auto")


def _row(*children: Any) -> Any:
    row = widgets.Box(children)
    row.layout.flex_flow = "row wrap"
    row.layout.align_items = "center"
    row.add_class("ll-row")
    return row

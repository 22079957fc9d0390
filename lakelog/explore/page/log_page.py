"""`LogPage`: all of a log on a page of its own: topics, records, groups."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

import ipywidgets as widgets
from msgspec import Struct

from ...errors import LakelogError
from ...operate.group_lag import GroupLag
from ...operate.status import Status
from ...values.topic import Topic
from ..explorer.background import Background
from ..explorer.style import CSS
from ..explorer.widget import LogExplorer
from ..link import ABOUT, GROUPS, RECORDS, TOPICS, Link
from ..words import count
from .tables import (
    GroupRow,
    groups_html,
    lags_html,
    partitions_html,
    schemas_html,
    settings_html,
    topic_rows,
    topics_html,
)

_TABS = (("Topics", TOPICS), ("Records", RECORDS), ("About the topic", ABOUT), ("Groups", GROUPS))

#: Tables are read again after so long, and after so many times what reading them took.
_REFRESH_S, _REFRESH_SHARE = 10.0, 20.0

#: Tells the page's place by what the browser was asked for, now and when it goes back.
_TELLER = escape(
    "var self = this; function tell(again) { "
    "var root = self.closest('.lakelog-page'), "
    "told = root && root.querySelector('.lakelog-place input'); "
    "if (!told) { if (again > 0) { setTimeout(function() { tell(again - 1); }, 100); } return; } "
    "told.value = location.pathname + location.search; "
    "told.dispatchEvent(new Event('input', {bubbles: true})); "
    "told.dispatchEvent(new Event('change', {bubbles: true})); } "
    "window.addEventListener('popstate', function() { tell(0); }); tell(100);"
)

_STYLE = """
<style>
.lakelog-page { padding: 4px 12px; }
.lakelog-page .lakelog-place { display: none; }
.lakelog-page .lakelog-tabs .widget-toggle-button { width: auto; }
.lakelog-page .ll-table tr[data-link] { cursor: pointer; }
.lakelog-page .ll-table tr[data-link]:hover td { background: var(--ll-faint); }
.lakelog-page .ll-table td.ll-c-headers, .lakelog-page .ll-table td.ll-c-schema {
  white-space: pre-wrap; overflow-wrap: anywhere; max-width: 40em; }
.lakelog-page .lakelog-overview .ll-scroll { max-height: none; }
.lakelog-page h3 { margin: 14px 0 4px; font-size: 110%; }
</style>
"""


class PageSource(Struct, frozen=True):
    """Where a page gets what it shows.

    Args:
        title: what the log is called.
        topics, status, groups: of all there is.
        lags: of all groups in some topics; None: in all.
        explore: makes the explorer.
    """

    title: str
    topics: Callable[[], Sequence[Topic]]
    status: Callable[[Iterable[str] | None], Status]
    groups: Callable[[], Sequence[GroupRow]]
    lags: Callable[[Iterable[str] | None], Sequence[GroupLag]]
    explore: Callable[[Link], LogExplorer]


class LogPage(widgets.VBox):  # type: ignore[misc]
    """Shows a log, and where in it one is as the browser's address.

    Nothing is read before the browser has told its address, so that a page may be made ahead.
    Tables are read off the main thread, again and again while they are shown.

    Attributes:
        explorer: what shows records; None: none were asked for yet.
        address: a script that has the browser show where it is.
    """

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._link = Link()
        self._is_quiet = False
        self.explorer: LogExplorer | None = None
        self._tables = Background()
        self._before: Status | None = None
        self._looks = 0
        self._make()
        style, teller = (
            widgets.HTML(text, layout={"height": "0px", "margin": "0px", "overflow": "hidden"})
            for text in (CSS + _STYLE, f'<style onload="{_TELLER}"></style>')
        )
        bar = widgets.HBox([self._tabs, self._filter, self._refresh, self._said])
        bar.add_class("ll-row")
        super().__init__(
            children=[
                *(style, bar, self._error, self._table, self._records),
                *(self._place, self.address, teller),
            ]
        )
        for name in ("lakelog-page", "lakelog-explorer"):
            self.add_class(name)

    def _make(self) -> None:
        self._tabs = widgets.ToggleButtons(options=_TABS, value=TOPICS)
        self._tabs.add_class("lakelog-tabs")
        self._tabs.style.button_width = "auto"
        self._filter = widgets.Text(placeholder="filter by name", layout={"width": "180px"})
        self._filter.add_class("lakelog-filter")
        self._refresh = widgets.Button(description="↻", tooltip="look again")
        self._refresh.layout.width = "auto"
        self._refresh.add_class("lakelog-again")
        self._said, self._error, self._table, self.address = (widgets.HTML() for _ in range(4))
        self._error.add_class("lakelog-wrong")
        self._table.add_class("lakelog-overview")
        self._records = widgets.VBox()
        self._place = widgets.Text(continuous_update=False)
        self._place.add_class("lakelog-place")
        self._place.observe(self._told, "value")
        self._tabs.observe(self._chose_tab, "value")
        self._filter.observe(lambda _: self._load(), "value")
        self._refresh.on_click(lambda _: self._load())

    @property
    def link(self) -> Link:
        """Where it is."""
        return self._link

    def go(self, link: Link) -> None:
        """Shows what a link names."""
        self._set(link)
        if link.view == RECORDS:
            self._show_records(link)
        self._load()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the table that was asked for last is shown; False if the time is over."""
        return self._tables.wait(timeout_s)

    # -- where it is -----------------------------------------------------------------------------

    def _told(self, change: Any) -> None:
        if not self._is_quiet:
            self.go(Link.parse(change["new"]))

    def _chose_tab(self, change: Any) -> None:
        if self._is_quiet:
            return
        view = change["new"]
        if view == RECORDS and self.explorer is not None:
            self._set(self.explorer.link)
            self._load()
            return
        topic = self._link.name if self._link.view in (RECORDS, ABOUT) else ""
        self.go(
            Link(view, topic or self._shown_topic()) if view in (RECORDS, ABOUT) else Link(view)
        )

    def _shown_topic(self) -> str:
        return "" if self.explorer is None else self.explorer.link.name

    def _set(self, link: Link) -> None:
        """Makes a link the browser's address, a step back from which leads to the one before."""
        is_step = (link.view, link.name) != (self._link.view, self._link.name)
        self._link = link
        call = "pushState" if is_step else "replaceState"
        title = " · ".join(part for part in (link.name, self._source.title, "lakelog") if part)
        script = (
            f"if (location.pathname + location.search !== '{link.path}') "
            f"{{ history.{call}(null, '', '{link.path}'); }} "
            f"document.title = decodeURIComponent('{_encoded(title)}');"
        )
        self._is_quiet = True
        try:
            self.address.value = f'<style onload="{escape(script)}"></style>'
            self._place.value = link.path
            self._tabs.value = link.view
        finally:
            self._is_quiet = False
        is_list = link.view in (TOPICS, GROUPS)
        self._filter.layout.display = None if is_list and not link.name else "none"
        self._records.layout.display = None if link.view == RECORDS else "none"
        self._table.layout.display = "none" if link.view == RECORDS else None

    # -- records ---------------------------------------------------------------------------------

    def _show_records(self, link: Link) -> None:
        try:
            if self.explorer is not None:
                self.explorer.go(link)
            else:
                self.explorer = explorer = self._source.explore(link)
                if link.partition is not None and link.offset is not None:
                    explorer.open_record(link.partition, link.offset)
                explorer.on_shown(self._explorer_moved)
                self._records.children = [explorer]
            self._error.value = ""
        except Exception as error:  # the visitor sees no log of it
            self._fail(error)

    def _explorer_moved(self) -> None:
        explorer = self.explorer
        if explorer is not None and self._link.view == RECORDS:
            self._set(explorer.link)

    # -- tables ----------------------------------------------------------------------------------

    def _load(self) -> None:
        """Reads the table of the link, and again while it is shown."""
        link, wanted = self._link, self._filter.value.strip()
        if link.view == RECORDS:
            self._tables.drop()
            self._looks += 1  # none is to come
            self._say("")
            return
        self._say("looking …")
        self._looks += 1
        look, began = self._looks, time.monotonic()

        def then(html: str) -> None:
            self._table.value = html
            self._error.value = ""
            now = datetime.now(timezone.utc)
            self._say(f"{escape(self._source.title)} as of {now:%H:%M:%S} UTC")
            self._again(look, time.monotonic() - began)

        def failed(error: Exception) -> None:
            self._fail(error)
            self._again(look, time.monotonic() - began)

        self._tables.start(lambda _: self._read(link, wanted), then, failed)

    def _again(self, look: int, took_s: float) -> None:
        def load() -> None:
            if self._looks == look and self.comm is not None:
                self._load()

        timer = threading.Timer(max(_REFRESH_S, _REFRESH_SHARE * took_s), load)
        timer.daemon = True
        timer.start()

    def _read(self, link: Link, wanted: str) -> str:
        if link.view == TOPICS:
            return self._topics(wanted)
        if link.view == GROUPS and not link.name:
            found = [one for one in self._source.groups() if wanted in one.group_id]
            return groups_html(found)
        if link.view == GROUPS:
            lags = [one for one in self._source.lags(None) if one.group_id == link.name]
            return f"<h3>{escape(link.name)}</h3>{lags_html(lags, by_group=False)}"
        return self._about(link.name) if link.name else "choose a topic in the list of topics"

    def _topics(self, wanted: str) -> str:
        status = self._source.status(None)
        topics = [one for one in self._source.topics() if wanted in one.name]
        rows = topic_rows(topics, status, self._before)
        self._before = status
        return topics_html(rows, self._source.lags(None))

    def _about(self, name: str) -> str:
        status = self._source.status([name])
        (topic,) = [one for one in self._source.topics() if one.name == name]
        (row,) = topic_rows([topic], status)
        schemas = schemas_html(topic)
        parts = [
            (f"{name}: {count(topic.partitions, 'partition')}", partitions_html(row)),
            ("Groups", lags_html(self._source.lags([name]), by_group=True)),
            *([("Schemas", schemas)] if schemas else []),
            (f"Settings (lakelog topics alter {name} --config NAME=VALUE)", settings_html(topic)),
        ]
        said = "".join(f"<div class='ll-note'>{escape(one.text)}</div>" for one in status.warnings)
        return said + "".join(f"<h3>{escape(head)}</h3>{html}" for head, html in parts)

    # -- what is said ----------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._said.value = f'<span class="ll-note">{text}</span>'

    def _fail(self, error: Exception) -> None:
        self._error.value = f'<div class="ll-error">{escape(_sentence(error))}</div>'
        self._say("")


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, LakelogError) else f"{type(error).__name__}: {error}"


def _encoded(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")

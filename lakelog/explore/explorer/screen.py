"""What the explorer's widgets show; `questions` says when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from ...base.text_table import counted
from ...errors import InvalidArgumentError, LakelogError
from ...read.found import Progress
from ...read.where import parse, write
from ...values.offsets import AtTimestamp, Earliest, Latest
from ...values.record import Record
from ...values.typed_time import UTC, zone_named
from ...values.value_ddl import parse_columns
from ..picture import Mark, Picture
from ..picture_html import legend, picture_html, summary
from .controls import ALL, CHOSEN_MOST, NONE, Controls, hide, unhide
from .member_columns import FIRST_COLUMNS, Members, heads_html, members_of, with_members
from .resend import ResendForm
from .rows import (
    OVER,
    columns_of,
    is_long,
    marked_row_html,
    note_html,
    record_html,
    records_shown,
    row_name,
    rows,
    table_html,
)
from .shown_code import code, shortened
from .shown_files import download_html
from .view import Ask, Shown, View

#: Between two drawings of how far a search is.
_PROGRESS_S = 0.2


class Screen:
    """Draws on the widgets. It is called by one thread at a time; see `Background.lock`.

    Args:
        css_class: this explorer's own.

    Attributes:
        shown: the page.
        opened: the name of the row whose record is open; None: none is.
        to_open: the name of a row that is opened with the next page.
        drawn: called when the rows, or what is open of them, have changed.
        pictured: the picture of time.
        known_columns: ``lakelog.value.columns`` of the topic shown.
    """

    def __init__(self, ui: Controls, css_class: str) -> None:
        self.ui = ui
        self.shown: Shown | None = None
        self.opened: str | None = None
        self.to_open: str | None = None
        self.drawn: Callable[[], None] = lambda: None
        self.pictured: Picture | None = None
        self.known_columns = ""
        self._told_topic, self._is_told = "", False  # and whether its columns are shown for that
        self._members = Members()  # of the page, while they are columns
        self.form = ResendForm(ui)
        self._drawn_open: str | None = None
        self.css_class = css_class
        self._quietly = threading.local()
        self._progress_s = 0.0

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """What this thread sets on the widgets meanwhile does not count as the user's input."""
        before = self.is_quiet
        self._quietly.on = True
        try:
            yield
        finally:
            self._quietly.on = before

    @property
    def is_quiet(self) -> bool:
        return bool(getattr(self._quietly, "on", False))

    @property
    def holds(self) -> bool:
        """Whether the rows are to stay: a record is open, or the pointer is over them."""
        return self.opened is not None or self.ui.pointer.value == OVER

    def zone(self) -> Any:
        """That of the box; UTC where that is none."""
        try:
            return zone_named(self.ui.zone.value)
        except InvalidArgumentError:
            return zone_named(UTC)

    def search_for(self, text: str) -> None:
        """Puts a text into the search box, as one that was asked for."""
        with self.quiet():
            self.ui.search.value = text

    # -- a page ----------------------------------------------------------------------------------

    def show(self, shown: Shown) -> None:
        """Draws a page."""
        before = None if self.shown is None else self.shown.view
        self.shown = shown
        names = _names(shown)
        if self.opened not in names or not _same_place(before, shown.view):
            self.opened = None
        if self.to_open in names:
            self.opened = self.to_open
        self.to_open = None
        ui, one = self.ui, shown.view.partition
        with self.quiet():
            self.topics([*ui.topic.options], shown.view.topic)
            self._partitions(shown.partitions)
            ui.partition.value = ALL if one is None else one
            if one is not None:
                ui.offset.value = shown.view.start_offset
            is_new = before is None or before.match != shown.view.match
            if is_new and not self._says(shown):
                self.search_for(write(shown.view.match))
            if [*ui.opened.options] != names:
                ui.opened.options = names
        self.draw_rows()  # first: all below speaks of them
        ui.notes.value = "".join(note_html(note) for note in shown.notes)
        if before != shown.view:  # the file that is offered is of the rows before
            ui.download.value = ""
        self.draw_code()
        self.draw_picture()

    def draw_code(self) -> None:
        """Draws the rows shown as code."""
        if self.shown is None:
            return
        text = escape(shortened(code(self.shown, self.ui.code.value, self.picked())))
        self.ui.expression.value = f'<span class="ll-code">{text}</span>'

    def tell_columns(self, topic: str, known: str) -> None:
        """Says which columns the topic has of its own: they are shown, until a click says not to.

        Args:
            known: its ``lakelog.value.columns``.
        """
        self.known_columns = known
        if topic == self._told_topic:
            return
        self._told_topic = topic
        if known or self._is_told:
            with self.quiet():
                self.ui.columns.value = bool(known)
            self.offer_members(bool(known))
        self._is_told = bool(known)

    def offer_members(self, on: bool) -> None:
        """Offers members to be picked and sorted by, or not."""
        (unhide if on else hide)(self.ui.members, self.ui.sort)

    def picked(self) -> list[tuple[str, str]]:
        """The members that are shown as columns, and their types, but for the topic's columns.

        Those are columns of the topic's frame anyway.
        """
        shown, ui = self.shown, self.ui
        if shown is None or not ui.columns.value:
            return []
        own = self._own()
        return [
            (one.name, one.type)
            for one in self._members.columns
            if one.name in ui.members.value and one.name not in own
        ]

    def download(self, kind: str) -> None:
        """Offers the rows shown as a file."""
        if self.shown is not None:
            self.ui.download.value = download_html(self.shown, kind)

    def draw_rows(self) -> None:
        """Draws the rows, and the record that is open."""
        if self.shown is not None:
            self._draw_rows(self.shown)
            self.drawn()

    def _draw_rows(self, shown: Shown) -> None:
        ui = self.ui
        where, kind = self.zone(), ui.format.value
        tail = isinstance(shown.ask.where, Latest)
        found, columns = rows(shown, where, kind), [*columns_of(shown)]
        heads: Mapping[str, str] = {}
        numbers: set[str] = set()
        if ui.columns.value:
            members = members_of(shown.readable["value"], self.known_columns)
            self._members = members
            self._offer(members)
            sort = ui.sort.value
            found, columns = with_members(found, columns, members, ui.members.value, sort)
            heads = heads_html(members)
            numbers = {one.column for one in members.columns if one.is_number}
        ui.table.value = table_html(found, columns, heads=heads, numbers=numbers, tail=tail)
        opened = self.opened
        with self.quiet():
            ui.opened.value = opened or ""
        ui.history.disabled = opened is None
        if opened != self._drawn_open:
            self.form.withdraw()
        self._drawn_open = opened
        if opened is None:
            ui.record.value = ""
            hide(ui.side)
            return
        unhide(ui.side)
        record, tier = self.record(opened, is_read=True)
        ui.record.value = marked_row_html(self.css_class, opened) + record_html(
            record, tier, where, kind, ui.full.value
        )
        (unhide if is_long(record) else hide)(ui.full)

    def draw_picture(self) -> None:
        """Draws the picture of time, with the rows and the chosen time marked on it."""
        picture, ui, shown = self.pictured, self.ui, self.shown
        if picture is None or picture.found is None or shown is None:
            ui.picture.value = ui.told.value = ""
            hide(ui.chosen, ui.zoom, ui.whole)
            return
        one, zone = shown.view.partition, self.zone()
        marks = self._marks(picture)
        ui.picture.value = picture_html(picture.found, marks, zone, one)
        kinds = {mark.kind for mark in marks}
        drawn = legend(picture.found, archived="archived" in kinds, read="group" in kinds)
        ui.told.value = (
            f'<div class="ll-told"><span>{escape(summary(picture.found, zone, one))}</span>'
            f'<span class="ll-legends">{drawn}</span></div>'
        )
        unhide(ui.chosen, ui.zoom, ui.whole)
        chosen = chosen_ms(shown.ask, picture)
        ui.zoom.disabled = not shown.ask.is_bounded or chosen is None
        ui.whole.disabled = not shown.ask.is_bounded and not picture.is_zoomed
        start, end = int(picture.found.edges_ms[0]), int(picture.found.edges_ms[-1])
        low, high = (
            min(CHOSEN_MOST, max(0, round(CHOSEN_MOST * (edge - start) / (end - start))))
            for edge in chosen or (start, end)
        )
        with self.quiet():
            ui.chosen.value = (low, high)

    def _own(self) -> set[str]:
        """The names of the topic's columns."""
        return {column.name for column in parse_columns(self.known_columns)}

    def _offer(self, members: Members) -> None:
        """Offers the members of this page; what was picked stays, where it is there."""
        ui, names = self.ui, members.names
        with self.quiet():
            if [*ui.members.options] != [*names]:
                kept = [name for name in ui.members.value if name in names]
                ui.members.options = names
                own = [name for name in names if name in self._own()]
                ui.members.value = kept or own or names[:FIRST_COLUMNS]
            orders = [
                (f"{name} {sign}", (name, down))
                for name in names
                for sign, down in (("↑", False), ("↓", True))
            ]
            options = [(NONE, None), *orders]
            if [*ui.sort.options] != options:
                before = ui.sort.value
                ui.sort.options = options
                ui.sort.value = before if before in [value for _, value in options] else None

    def has(self, name: str) -> bool:
        """Whether a row is on the page."""
        return self.shown is not None and name in _names(self.shown)

    def record(self, name: str, *, is_read: bool = False) -> tuple[Record, str]:
        """The record of a row, and its tier.

        Args:
            is_read: with key and value as people read them.

        Raises:
            InvalidArgumentError: the page does not hold it.
        """
        shown = self.shown
        if shown is not None and self.has(name):
            number = _names(shown).index(name)
            return records_shown(shown, are_read=is_read)[number], shown.tiers[number]
        raise InvalidArgumentError(f"row {name} is not on the page")

    def topics(self, names: Sequence[str], topic: str, *, all_there_are: bool = False) -> None:
        """Offers topics.

        Args:
            topic: the one that is asked for.
            all_there_are: whether it is none if it is not among them.
        """
        is_known = topic in names
        options = [*names] if is_known or all_there_are or not topic else sorted([*names, topic])
        with self.quiet():
            if [*self.ui.topic.options] != options:
                self.ui.topic.options = options
            if topic:
                self.ui.topic.value = topic if topic in options else None

    def segments(self, choices: Sequence[tuple[str, int]], bundle: Mapping[str, Any]) -> None:
        """Draws the segments of the partition, and offers to go to one.

        Args:
            choices: a label, and the offset to seek to.
            bundle: the drawing, by mimetype.
        """
        ui = self.ui
        with self.quiet():
            ui.segment.options = [(NONE, -1), *choices]
        output = {"output_type": "display_data", "data": dict(bundle), "metadata": {}}
        ui.segment_map.outputs = (output,)
        unhide(ui.segment, ui.segment_map)

    def no_segments(self) -> None:
        """Leaves none of them."""
        with self.quiet():
            self.ui.segment.options = [(NONE, -1)]
        hide(self.ui.segment, self.ui.segment_map)

    # -- what is under way -----------------------------------------------------------------------

    def busy(self, text: str, *, stoppable: bool = False) -> None:
        """Says that something is under way."""
        self.ui.progress.value = f'<span class="ll-busy"><progress></progress>{text}</span>'
        self.ui.stop.disabled = not stoppable
        self._progress_s = 0.0

    def following(self) -> None:
        """Says that the tail is followed, and that nothing new waits.

        The button is not touched: what is sent to a page crosses a click on it there.
        """
        self.busy("following the tail …", stoppable=True)
        hide(self.ui.new)

    def progress(self, progress: Progress) -> None:
        """Says how far a search is, a few times a second."""
        now_s = time.monotonic()
        if now_s - self._progress_s < _PROGRESS_S:
            return
        self._progress_s = now_s
        text = (
            f"{counted(progress.read, 'record')}, {progress.bytes / 1e6:,.1f} MB read; "
            f"{progress.matches:,} {'match' if progress.matches == 1 else 'matches'}"
        )
        if len(progress.offsets) == 1:
            (at,) = progress.offsets.values()
            text += f"; at offset {at:,}"
        bar = f'<progress max="1" value="{progress.share:.3f}"></progress>'
        self.ui.progress.value = f'<span class="ll-busy">{bar}{text}</span>'

    def new(self, records: int) -> None:
        """Offers to catch up with the tail."""
        self.ui.new.description = f"+{records:,} new"
        unhide(self.ui.new)

    def idle(self) -> None:
        """Says that nothing is under way."""
        self.ui.progress.value = ""
        self.ui.stop.disabled = True
        hide(self.ui.new)
        with self.quiet():
            self.ui.follow.value = False

    def told(self, text: str) -> None:
        """Says something in the place of the picture."""
        self.pictured = None
        self.draw_picture()
        self.ui.told.value = note_html(text)

    def note(self, text: str) -> None:
        self.ui.notes.value = note_html(text)

    def error(self, error: Exception | None) -> None:
        """Shows an error until it is over."""
        text = ""
        if error is not None:
            text = str(error)
            if not isinstance(error, LakelogError):
                text = f"{type(error).__name__}: {error}"
            text = f'<div class="ll-error" role="alert">{escape(text)}</div>'
        self.ui.error.value = text
        (unhide if text else hide)(self.ui.error, self.ui.retry)

    # -- how -------------------------------------------------------------------------------------

    def _partitions(self, count: int) -> None:
        options = [(f"partition {number}", number) for number in range(count)]
        if count > 1:
            options.insert(0, (f"all {count:,} partitions", ALL))
        if [*self.ui.partition.options] != options:
            self.ui.partition.options = options

    def _says(self, shown: Shown) -> bool:
        """Whether the box says in its own words what is shown."""
        try:
            typed = parse(self.ui.search.value, zone_named(self.ui.zone.value))
        except InvalidArgumentError:
            return False
        return typed == shown.view.match

    def _marks(self, picture: Picture) -> list[Mark]:
        marks, shown = [*picture.marks], self.shown
        if shown is None:
            return marks
        if shown.ask.is_bounded and (chosen := chosen_ms(shown.ask, picture)) is not None:
            marks.append(Mark("chosen", *chosen, text="searched"))
        if (page := _times_ms(shown)) is not None:
            marks.append(Mark("page", *page, text="the rows shown"))
        return marks


def chosen_ms(ask: Ask, picture: Picture) -> tuple[int, int] | None:
    """The time that is searched, as far as it is said by times."""
    if picture.found is None:
        return None
    start, end = int(picture.found.edges_ms[0]), int(picture.found.edges_ms[-1])
    first, last = ask.span
    if not isinstance(first, AtTimestamp | Earliest) or not isinstance(last, AtTimestamp | Latest):
        return None
    return (
        first.timestamp_ms if isinstance(first, AtTimestamp) else start,
        last.timestamp_ms if isinstance(last, AtTimestamp) else end,
    )


def _times_ms(shown: Shown) -> tuple[int, int] | None:
    if not shown.records.num_rows:
        return None
    micros = np.asarray(shown.records["timestamp"].cast(pa.int64()))
    micros = micros[micros >= 0]
    return (int(micros.min()) // 1000, int(micros.max()) // 1000) if len(micros) else None


def _names(shown: Shown) -> list[str]:
    """Of the rows of a page."""
    return [row_name(*place) for place in shown.places]


def _same_place(before: View | None, now: View) -> bool:
    return before is not None and (before.topic, before.partition) == (now.topic, now.partition)

"""What the user's hands do to the explorer's widgets, as questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone, tzinfo
from functools import partial
from html import escape
from typing import Any

from msgspec.structs import replace

from ...errors import InvalidArgumentError
from ...read.found import SearchLimit
from ...read.where import Always, parse
from ...values.offsets import (
    AtOffset,
    AtTimestamp,
    Earliest,
    EarliestLocal,
    Latest,
    Position,
    at_time,
    position,
)
from ...values.typed_time import (
    UTC,
    TypedTime,
    clock_text,
    read_time,
    rounded_up_ms,
    zone_named,
)
from .controls import ALL, CHOSEN_MOST, NONE, UTC_NAMES, hide, unhide
from .key_history import history_of
from .questions import Questions
from .screen import Screen, chosen_ms
from .view import Ask

#: A drag that is shorter, of the picture's width, is a click.
_CLICK_SHARE = 0.005


class Handlers:
    """Hears clicks and changes. Each runs while nothing else is drawn.

    What is typed into a box is told by Enter, or when the box is left, and asked for at once: so it
    is part of whatever is clicked next. The same once more is asked by a click on Search or Seek.
    """

    def __init__(self, screen: Screen, questions: Questions) -> None:
        self._refused: Exception | None = None  # the last input that was not even a question
        self._screen = screen
        self._ui = screen.ui
        self._questions = questions
        self._seek_by_time = False
        self._connect()

    def _connect(self) -> None:
        ui, questions = self._ui, self._questions
        self._on_change(ui.topic, self._chose_topic)
        self._on_change(ui.partition, self._chose_partition)
        self._on_change(ui.offset, self._typed_offset)
        self._on_change(ui.chosen, self._chose_time)
        self._on_change(ui.picked, self._picked)
        self._on_change(ui.more, lambda on: (unhide if on else hide)(ui.secondary))
        self._on_click(ui.zoom, self._clicked_zoom)
        self._on_click(ui.whole, self._clicked_whole)
        self._on_change(ui.timestamp, lambda _: self._entered_time())
        self._on_change(ui.search, lambda _: self._clicked_search())
        self._on_change(ui.zone, self._chose_zone)
        self._on_change(ui.reader_zone, self._told_zone)
        self._on_change(ui.page_records, self._chose_page_records)
        self._on_change(ui.format, lambda _: self._screen.draw_rows())
        self._on_change(ui.full, lambda _: self._screen.draw_rows())
        if questions.may_write:
            self._connect_sending()
        self._on_change(ui.columns, self._toggled_columns)
        for widget in (ui.members, ui.sort):
            self._on_change(widget, lambda _: self._draw_columns())
        self._on_change(ui.code, lambda _: self._screen.draw_code())
        self._on_change(ui.export, self._chose_export)
        self._on_change(ui.opened, self._chose_record)
        self._on_change(ui.follow, self._toggled_follow)
        self._on_change(ui.segments, self._toggled_segments)
        self._on_change(ui.segment, self._chose_segment)
        self._on_click(ui.refresh, self._refresh)
        self._on_click(ui.seek, self._clicked_seek)
        for button, where in (
            (ui.earliest, Earliest()),
            (ui.earliest_local, EarliestLocal()),
            (ui.latest, Latest()),
        ):
            self._on_click(button, partial(self._go, where))
        self._on_click(ui.back, lambda: questions.start(questions.turned(forward=False)))
        self._on_click(ui.forward, lambda: questions.start(questions.turned(forward=True)))
        self._on_click(ui.find, self._clicked_search)
        self._on_click(ui.stop, questions.stop)
        self._on_click(ui.clear, self._clicked_clear)
        self._on_click(ui.history, self._clicked_history)
        self._on_click(ui.retry, self._clicked_retry)
        self._on_click(ui.new, self._catch_up)

    def _connect_sending(self) -> None:
        ui, form = self._ui, self._screen.form
        self._on_click(ui.again, self._clicked_again)
        self._on_click(ui.send, self._clicked_send)
        self._on_click(ui.send_not, form.withdraw)
        for box in (ui.send_topic, ui.send_key, ui.send_value):
            self._on_change(box, lambda _: form.ask_again())
        unhide(ui.again)

    def _on_change(self, widget: Any, do: Callable[[Any], Any]) -> None:
        def changed(change: Any) -> None:
            if not self._screen.is_quiet:
                self._asked(lambda: do(change["new"]))

        widget.observe(changed, names="value")

    def _on_click(self, button: Any, do: Callable[[], Any]) -> None:
        button.on_click(lambda _: self._asked(do))

    def _asked(self, do: Callable[[], Any]) -> None:
        """Something is clicked, chosen or entered."""
        self._questions.background.alone(lambda: self._guarded(do))

    def _guarded(self, do: Callable[[], Any]) -> None:
        """Shows an error also for input that is not even a question (such as an invalid time).

        Such an error, and how a time was read, are gone with the next thing that is done.
        """
        questions = self._questions
        with questions.background.lock:
            self._ui.taken.value = ""
            try:
                do()
                if self._refused is not None and questions.error is self._refused:
                    questions.succeed()
            except Exception as error:
                self._refused = error
                # This input is the newest: work under way would cover its error and run on unseen.
                questions.background.drop()
                self._screen.idle()
                questions.show_error(error, lambda: self._guarded(do))

    # -- places ----------------------------------------------------------------------------------

    def _go(self, where: Position) -> None:
        self._questions.start(replace(self._ask(), where=where))

    def _ask(self) -> Ask:
        """The last question, but for where."""
        return replace(self._questions.ask, history=False)

    def _chose_topic(self, topic: str) -> None:
        self._screen.search_for("")
        ask = self._questions.ask
        whole = (Earliest(), Latest())
        ask = replace(ask, topic=topic, partition=None, where=Earliest(), span=whole)
        self._questions.start(replace(ask, match=Always(), history=False))

    def _chose_partition(self, partition: int) -> None:
        one = None if partition == ALL else partition
        self._questions.start(replace(self._ask(), partition=one, where=Earliest()))

    def _typed_offset(self, offset: int) -> None:
        self._seek_by_time = False
        self._go(position(offset))

    def _chose_time(self, chosen: tuple[int, int]) -> None:
        """The range below the picture: what is searched."""
        low, high = chosen
        first = Earliest() if low == 0 else AtTimestamp(self._time_ms(low / CHOSEN_MOST))
        last = Latest() if high == CHOSEN_MOST else AtTimestamp(self._time_ms(high / CHOSEN_MOST))
        window = self._questions.window
        if window is not None:  # the ends of a part are no ends of the log
            first = AtTimestamp(self._time_ms(low / CHOSEN_MOST))
            last = AtTimestamp(self._time_ms(high / CHOSEN_MOST))
        self._questions.start(replace(self._ask(), where=Earliest(), span=(first, last)))

    def _picked(self, text: str) -> None:
        """What was drawn in the picture: a click goes there, a drag chooses a time."""
        shares = [min(1.0, max(0.0, float(one))) for one in text.split()[:2]]
        if len(shares) < 2:
            return
        low, high = shares
        if high - low < _CLICK_SHARE:
            whole = (Earliest(), Latest())
            where = AtTimestamp(self._time_ms(low))
            self._questions.start(replace(self._ask(), where=where, span=whole))
        else:
            self._chose_time((int(low * CHOSEN_MOST), math.ceil(high * CHOSEN_MOST)))

    def _time_ms(self, share: float) -> int:
        picture = self._screen.pictured
        if picture is None or picture.found is None:
            raise InvalidArgumentError("no record is known to have a time: none can be chosen")
        start, end = (int(picture.found.edges_ms[edge]) for edge in (0, -1))
        return max(0, start + round(share * (end - start)))

    def _clicked_zoom(self) -> None:
        picture = self._screen.pictured
        chosen = None if picture is None else chosen_ms(self._questions.ask, picture)
        if chosen is not None and chosen[0] < chosen[1]:
            self._questions.look_at(chosen)

    def _clicked_whole(self) -> None:
        self._questions.window = None
        whole = (Earliest(), Latest())
        self._questions.start(replace(self._ask(), where=Earliest(), span=whole))

    def _entered_time(self) -> None:
        self._seek_by_time = bool(self._ui.timestamp.value.strip())
        if self._seek_by_time:
            self._go(at_time(self._read_time()))

    def _read_time(self) -> TypedTime:
        """What the box says, which is told beside it."""
        self._ui.taken.value = ""
        zone, now = zone_named(self._ui.zone.value), datetime.now(timezone.utc)
        found = read_time(self._ui.timestamp.value, zone, now)
        self._ui.taken.value = taken_html(found, zone, now)
        return found

    def _clicked_seek(self) -> None:
        if self._seek_by_time:
            self._entered_time()
        else:
            self._typed_offset(self._ui.offset.value)

    def _refresh(self) -> None:
        self._questions.forget_segments()  # draw them again, too
        if self._questions.ask.topic:
            self._questions.ask = self._questions.from_here()
        self._questions.load_topics()

    def _toggled_follow(self, on: bool) -> None:
        if on:
            self._questions.ask = self._ask()
            self._questions.follow()
        else:
            self._questions.stop()

    def _catch_up(self) -> None:
        self._screen.opened = None
        self._screen.draw_rows()
        hide(self._ui.new)

    # -- searches --------------------------------------------------------------------------------

    def _clicked_search(self) -> None:
        match = parse(self._ui.search.value, zone_named(self._ui.zone.value))
        ask = replace(self._questions.ask, where=Earliest(), match=match, history=False)
        self._questions.start(replace(ask, limit=SearchLimit()))

    def _clicked_clear(self) -> None:
        self._screen.search_for("")
        ask = replace(self._questions.from_here(), match=Always(), history=False)
        self._questions.start(replace(ask, span=(Earliest(), Latest())))

    def _clicked_history(self) -> None:
        if self._screen.opened is not None:
            record, _ = self._screen.record(self._screen.opened)
            self._questions.start(history_of(self._questions.ask, record.key))

    def _clicked_retry(self) -> None:
        if self._questions.failed is not None:
            self._questions.failed()

    # -- how it is shown -------------------------------------------------------------------------

    def _chose_zone(self, name: str) -> None:
        zone_named(name)
        if self._seek_by_time:  # what is typed means another time now
            with suppress(InvalidArgumentError):
                self._read_time()
        self._screen.draw_rows()
        self._screen.draw_picture()

    def _told_zone(self, name: str) -> None:
        """The reader's zone: it is taken unless another one was chosen."""
        if self._ui.zone.value != UTC or name in UTC_NAMES:
            return
        try:
            zone_named(name)
        except InvalidArgumentError:  # a newer one than this machine knows
            return
        with self._screen.quiet():
            self._ui.zone.value = name
        self._screen.draw_rows()
        self._screen.draw_picture()

    def _chose_page_records(self, records: int) -> None:
        self._questions.start(replace(self._questions.from_here(), page_records=records))

    def _chose_record(self, name: str) -> None:
        screen, name = self._screen, name.strip()
        if name and not screen.has(name):
            if screen.opened is not None:
                screen.draw_rows()  # the box names what is open; else what was typed stays
            raise InvalidArgumentError(
                f"{name!r} is none of the rows shown: name one as partition:offset, "
                "such as 0:17, or seek its offset first"
            )
        screen.opened = name or None
        with screen.quiet():
            self._ui.full.value = False
        screen.draw_rows()

    def _clicked_again(self) -> None:
        screen = self._screen
        if screen.opened is not None and screen.shown is not None:
            record, _ = screen.record(screen.opened)
            with screen.quiet():
                screen.form.offer(record, self._ui.topic.options, screen.shown.view.topic)

    def _clicked_send(self) -> None:
        record = self._screen.form.clicked()
        if record is not None:
            self._questions.send(record)

    def _toggled_columns(self, on: bool) -> None:
        self._screen.offer_members(on)
        self._draw_columns()

    def _draw_columns(self) -> None:
        self._screen.draw_rows()
        self._screen.draw_code()  # Spark's has them, too

    def _chose_export(self, kind: str) -> None:
        if kind == NONE:
            return
        with self._screen.quiet():
            self._ui.export.value = NONE  # so that the same can be chosen again
        self._screen.download(kind)

    def _toggled_segments(self, on: bool) -> None:
        if on:
            self._questions.draw_segments()
            return
        self._questions.forget_segments()
        self._screen.no_segments()

    def _chose_segment(self, offset: int) -> None:
        if offset >= 0:
            self._go(AtOffset(offset))


def taken_html(time: TypedTime, zone: tzinfo, now: datetime) -> str:
    """The moment as the zone's clocks show it, and what the text left open.

    Args:
        now: aware; what a distance back counts from.
    """
    if time.said is not None:
        text = time.said
    else:
        at_ms = time.timestamp_ms
        if at_ms is None:
            at_ms = rounded_up_ms(now - (time.ago or timedelta(0)))
        text = f"= {clock_text(at_ms, zone)}"
    return f'<span class="ll-kind">{escape(text)}</span>'

"""`LogExplorer`: browse a log in a notebook."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...errors import (
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    MissingExtraError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ...offsets import (
    AtOffset,
    Earliest,
    EarliestLocal,
    Latest,
    Position,
    PositionLike,
    at_time,
    position,
)
from ...read.topic_log import TopicLog
from ...read.where import Always, parse, write
from ...record import Record, TopicPartition, to_records
from ...typed_time import UTC, read_time, zone_named
from .answer import answer
from .background import Background, Job
from .controls import Controls, hide, unhide
from .follow import follow
from .key_history import history_of
from .opened_topic import OpenedTopic
from .page_text import page_text
from .record_html import is_long, record_html
from .rows import COLUMNS, rows
from .saved_output import SavedOutput, saved_html
from .scan import Progress, ScanLimit
from .segment_map import SegmentMap, segment_map
from .table_html import marked_row_html, table_html
from .taken_time import taken_html
from .tier_map import map_html, scale_of
from .view import DEFAULT_PAGE_RECORDS, Ask, Shown, View

#: How long to wait for a page before something is shown. A page that comes in time is part of the
#: first output, also as text where there are no widgets.
_QUICK_S = 0.5

_MIB = 1 << 20
_NONE = -1  # no record is opened
_NO_TOPICS = "there are no topics yet"


class LogExplorer(widgets.VBox):  # type: ignore[misc]
    """Shows a page of one partition's records, from either tier, and moves where it is told.

    A click starts a read off the main thread: the widget says at once that it is busy, and the
    newest question wins. While Redis does not answer, it shows archived records beside the error.
    Errors stay below the table, with a button to ask again, until something succeeds. The methods
    here do the same, but return when the page is shown, and raise errors.

    Attributes of use in code: `expression`, `data`, `view`, `error`, `wait`.

    Args:
        log_of: opens a topic.
        topics: the names to choose from.
        topic: the one to begin with; None: the first by name.
        at: where to begin; see `lakelog.offsets.position`.
        page_records: rows of a page.
        archived_of: opens a topic's archived records while Redis does not answer; None: nothing.

    Raises:
        UnknownTopicOrPartitionError: no such topic or partition.
        InvalidArgumentError: not a position.
    """

    def __init__(
        self,
        log_of: Callable[[str], TopicLog],
        topics: Callable[[], Sequence[str]],
        topic: str | None = None,
        partition: int = 0,
        at: PositionLike = "earliest",
        *,
        page_records: int = DEFAULT_PAGE_RECORDS,
        archived_of: Callable[[str], TopicLog] | None = None,
    ) -> None:
        where = position(at)
        if isinstance(page_records, bool) or not isinstance(page_records, int) or page_records < 1:
            raise InvalidArgumentError(f"page_records={page_records!r} is not a number ≥ 1")
        self._log_of = log_of
        self._archived_of = archived_of
        self._topics = topics
        self._opened_topics: dict[str, OpenedTopic] = {}
        self._background = Background()
        self._drawing = Background(beside=self._background)  # of segments
        self._drawn: tuple[str, int] | None = None  # the topic and partition that they belong to
        self._quietly = threading.local()
        self._shown: Shown | None = None
        self._failed: Callable[[], None] | None = None  # asks again what failed
        self._opened_offset: int | None = None
        self._seek_by_time = False
        self.error: Exception | None = None
        self._zone_error: Exception | None = None  # the last error about a zone's name
        self._ui = Controls()
        super().__init__(children=self._ui.rows())
        self._css_class = f"ll-{self.model_id}"  # this explorer's own
        self.add_class("lakelog-explorer")
        self.add_class(self._css_class)
        self._ask = Ask(topic or "", partition, where, page_records=page_records)
        with self._quiet():
            if page_records not in self._ui.page_records.options:
                options = sorted({*self._ui.page_records.options, page_records})
                self._ui.page_records.options = options
            self._ui.page_records.value = page_records
        self._saved = SavedOutput(self._css_class, self._ui.table, self._kept)
        self._connect()
        self._begin(topic)

    # -- what is shown, as code and as data ------------------------------------------------------

    @property
    def view(self) -> View:
        """The range of the rows shown, and what they match.

        Raises:
            LakelogError: nothing could be shown yet; this is why.
        """
        self.wait()
        if self._shown is None:
            raise self.error or InvalidArgumentError("there is no topic to show yet")
        return self._shown.view

    @property
    def expression(self) -> str:
        """The call that gives the rows shown, such as ``log.read(0, 100, 150)``, where `log` is
        ``lakelog.log(topic)``.
        """
        return self.view.expression

    def data(self, form: str = "arrow") -> Any:
        """The rows shown: a `RECORDS` table, or with ``"pandas"`` a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
            InvalidArgumentError: another form.
            LakelogError: nothing could be shown yet; this is why.
        """
        self.wait()
        if self._shown is None:
            raise self.error or InvalidArgumentError("there is no topic to show yet")
        if form == "arrow":
            return self._shown.records
        if form != "pandas":
            raise InvalidArgumentError(f"{form!r} is neither 'arrow' nor 'pandas'")
        try:
            return self._shown.records.to_pandas()
        except ImportError as error:
            raise MissingExtraError(
                "pandas is not installed; pip install 'lakelog[explore]'"
            ) from error

    def to_pandas(self) -> Any:
        """``data("pandas")``."""
        return self.data("pandas")

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the last answer, or its error, is shown; False if the time is over."""
        return self._background.wait(timeout_s) and self._drawing.wait(timeout_s)

    # -- going somewhere -------------------------------------------------------------------------

    def seek(self, to: PositionLike) -> LogExplorer:
        """Shows the page that begins at a position; for the end, the last page.

        Args:
            to: an offset, a name, a time, a distance from now; see `lakelog.offsets.position`.
        """
        return self._asked(self._start(replace(self._ask, where=position(to), history=False)))

    def forward(self) -> LogExplorer:
        """Shows the page after this one."""
        return self._asked(self._start(self._next(forward=True)))

    def back(self) -> LogExplorer:
        """Shows the page before this one."""
        return self._asked(self._start(self._next(forward=False)))

    def choose(self, topic: str, partition: int = 0, at: PositionLike = "earliest") -> LogExplorer:
        """Shows another topic or partition, without a filter."""
        ask = replace(
            self._ask,
            topic=topic,
            partition=partition,
            where=position(at),
            match=Always(),
            history=False,
        )
        return self._asked(self._start(ask))

    def scan(
        self,
        where: str = "",
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
    ) -> LogExplorer:
        """Shows the records that match from here on, as far as a scan may read.

        Args:
            where: see `RangeRead.matching`; without it, all records.
            max_records, max_bytes: the most to read; default 1,000,000 and 256 MiB.
        """
        match = parse(where)
        default = ScanLimit()
        limit = ScanLimit(
            default.records if max_records is None else max_records,
            default.bytes if max_bytes is None else max_bytes,
        )
        ask = replace(self._from_here(), match=match, limit=limit, history=False)
        return self._asked(self._start(ask))

    def history(self, key: str | bytes) -> LogExplorer:
        """Shows the versions of a key in this partition, from both tiers, the newest page first."""
        data = key.encode() if isinstance(key, str) else key
        return self._asked(self._start(history_of(self._ask, data)))

    def follow(self) -> LogExplorer:
        """Shows the tail as it grows, until something else is asked for or `stop` is called."""
        return self._asked(self._start_following())

    def stop(self) -> None:
        """Ends a scan with what it has, or the following of the tail."""
        self._background.stop()
        with self._quiet():
            self._ui.follow.value = False

    def record(self, offset: int) -> Record:
        """Opens a record of the page below the table, and returns all of it.

        Raises:
            InvalidArgumentError: the page does not hold it.
        """
        self.wait()
        with self._background.lock:
            found = self._record(offset)
            self._opened_offset = offset
            self._draw_rows()
        return found

    def close(self) -> None:
        """Closes the widget, and ends its reads."""
        background = getattr(self, "_background", None)
        if background is not None:
            self.stop()
            background.drop()
            self._drawing.drop()
        super().close()
        saved = getattr(self, "_saved", None)
        if saved is not None:
            saved.close()
        ui = getattr(self, "_ui", None)
        for widget in [] if ui is None else ui.all():
            widget.close()

    # -- as text ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown = self._shown
        if shown is None:
            said = f"{self.error}" if self.error else "reading …"
            if not self._ask.topic and self._background.wait(0):
                return f"LogExplorer: {self.error or _NO_TOPICS}"
            return f"LogExplorer({self._ask.topic}-{self._ask.partition}): {said}"
        found = rows(shown, self._zone(), self._ui.format.value)
        where = TopicPartition(shown.view.topic, shown.view.partition)
        log = f"[{shown.offsets.log_start}, {shown.offsets.log_end})"
        lines = [f"{where} {log}  {shown.view.expression}", page_text(found), *shown.notes]
        if self.error is not None:
            lines.append(f"error: {self.error}")
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        self.wait(_QUICK_S)
        return {
            "text/plain": repr(self),
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            },
        }

    def _ipython_display_(self, **_: Any) -> None:
        self._saved.show(self._repr_mimebundle_())

    def _kept(self) -> tuple[str, str]:
        """The page as HTML and as text, for a notebook that is read without its kernel."""
        shown = self._shown
        if shown is None:
            return f"<div>{escape(repr(self))}</div>", repr(self)
        view = shown.view
        html = saved_html(
            self._css_class,
            rows(shown, self._zone(), self._ui.format.value),
            COLUMNS,
            str(TopicPartition(view.topic, view.partition)),
            view.expression,
            shown.notes,
        )
        return html, repr(self)

    # -- asking ----------------------------------------------------------------------------------

    def _begin(self, topic: str | None) -> None:
        if topic is not None:
            try:
                self._open(topic).log.topic.partition(self._ask.partition)
            except (InvalidArgumentError, KeyError):  # the call was wrong
                self.close()
                raise
            except LakelogError:
                pass  # Redis is away: reading the page shows the error, with a button to try again
        job = self._load_topics() if topic is None else self._start(self._ask)
        job.done.wait(_QUICK_S)  # a slower answer is shown when it comes

    def _load_topics(self) -> Job:
        """Reads the names, and shows the topic that is chosen or the first."""

        def work(job: Job) -> tuple[list[str], Shown | None]:
            names = sorted(self._topics())
            ask = self._ask
            if not ask.topic and names:
                ask = replace(ask, topic=names[0])

            def draw() -> None:
                self._ask = ask
                self._draw_topics(names, all_there_are=True)

            # Even if the page fails: the names let the user leave a topic that is gone.
            self._background.only_if_newest(job, draw)
            return names, self._answer(ask, job) if ask.topic else None

        def then(found: tuple[list[str], Shown | None]) -> None:
            _, shown = found
            if shown is None:
                self._succeed()
                self._idle()
                self._ui.notes.value = _note(_NO_TOPICS)
            else:
                self._show(shown)

        self._busy("looking …")
        return self._background.start(work, then, self._fails(self._load_topics))

    def _start(self, ask: Ask) -> Job:
        """Asks, and shows the answer."""
        self._ask = ask  # at once: a second click changes this question, not the one before
        self._busy("scanning …" if ask.is_search else "reading …", stoppable=ask.is_search)

        def work(job: Job) -> tuple[Shown, list[str] | None]:
            shown = self._answer(ask, job)
            is_needed = ask.topic not in self._ui.topic.options and shown.error is None
            return shown, sorted(self._topics()) if is_needed else None

        def then(found: tuple[Shown, list[str] | None]) -> None:
            shown, names = found
            if names is not None:
                self._draw_topics(names)
            self._show(shown)
            if shown.error is not None:
                self._fails(lambda: self._start(ask))(shown.error)

        return self._background.start(work, then, self._fails(lambda: self._start(ask)))

    def _answer(self, ask: Ask, job: Job) -> Shown:
        def on_progress(progress: Progress) -> None:
            self._background.only_if_newest(job, lambda: self._draw_progress(progress))

        def of(opened: OpenedTopic) -> Shown:
            return answer(opened, ask, on_progress=on_progress, stopped=job.stopped)

        try:
            return of(self._open(ask.topic))
        except HotTierUnavailableError as error:
            if self._archived_of is None:
                raise
            try:
                shown = of(OpenedTopic(self._archived_of(ask.topic)))
            except LakelogError:
                raise error from None  # that error is the one to mend
            return replace(shown, error=error)

    def _start_following(self) -> Job:
        ask = self._ask = replace(self._ask, where=Latest(), history=False)
        self._busy("following the tail …", stoppable=True)
        with self._quiet():
            self._ui.follow.value = True

        def work(job: Job) -> Shown:
            def on_shown(shown: Shown) -> None:
                def show() -> None:
                    self._show(shown, following=True)
                    job.done.set()

                self._background.only_if_newest(job, show)

            return follow(
                self._open(ask.topic),
                ask,
                on_shown=on_shown,
                stopped=lambda: job.stopped() or self.comm is None,
            )

        def then(shown: Shown) -> None:
            self._idle()

        return self._background.start(work, then, self._fails(self._start_following))

    def _open(self, topic: str) -> OpenedTopic:
        if not topic:
            raise InvalidArgumentError("there is no topic to show yet: create one, then press ↻")
        opened = self._opened_topics.get(topic)
        if opened is None:
            opened = self._opened_topics[topic] = OpenedTopic(self._log_of(topic))
        return opened

    def _asked(self, job: Job) -> LogExplorer:
        job.done.wait()
        if job.error is not None:
            raise job.error
        return self

    def _next(self, *, forward: bool) -> Ask:
        self.wait()
        if self._shown is None:
            return self._ask
        return self._shown.ask_forward if forward else self._shown.ask_back

    def _from_here(self) -> Ask:
        """The last question, asked from the start of the page."""
        ask, shown = self._ask, self._shown
        if shown is None or (shown.view.topic, shown.view.partition) != (ask.topic, ask.partition):
            return ask
        return replace(ask, where=AtOffset(shown.view.start_offset))

    # -- showing ---------------------------------------------------------------------------------

    def _show(self, shown: Shown, *, following: bool = False) -> None:
        self._succeed()
        if not following:
            self._idle()
        before = None if self._shown is None else self._shown.view
        self._shown = shown
        self._ask = shown.ask
        offsets = [*shown.records["offset"].to_pylist()]
        if self._opened_offset not in offsets or not _same_partition(before, shown.view):
            self._opened_offset = None
        ui = self._ui
        with self._quiet():
            self._draw_topics([*ui.topic.options])
            numbers = list(range(shown.partitions))
            if list(ui.partition.options) != numbers:
                ui.partition.options = numbers
            ui.partition.value = shown.view.partition
            self._draw_slider(shown)
            ui.offset.value = shown.view.start_offset
            if (before is None or before.match != shown.view.match) and not self._is_typed(shown):
                # Otherwise the box holds what the user is typing for the next scan.
                ui.search.value = write(shown.view.match)
            ui.opened.options = [("–", _NONE), *((str(offset), offset) for offset in offsets)]
        ui.map.value = map_html(shown.offsets, shown.view.start_offset, shown.view.end_offset)
        ui.notes.value = "".join(_note(note) for note in shown.notes)
        ui.expression.value = (
            f'<span class="ll-code">{escape(shown.view.expression)}</span>'
            f'<span class="ll-kind">  # log = lakelog.log({escape(repr(shown.view.topic))})</span>'
        )
        self._draw_rows()
        if ui.segment.options and ui.segment.value != shown.view.start_offset:
            with self._quiet():
                ui.segment.value = _NONE  # so that the same segment can be chosen again
        if ui.segments.value and self._drawn != (shown.view.topic, shown.view.partition):
            self._draw_segments()

    def _is_typed(self, shown: Shown) -> bool:
        """Whether the box says in its own words what is shown."""
        try:
            typed = parse(self._ui.search.value, zone_named(self._ui.zone.value))
        except InvalidArgumentError:
            return False
        return typed == shown.view.match

    def _draw_slider(self, shown: Shown) -> None:
        slider, scale = self._ui.slider, scale_of(shown.offsets)
        edges = [scale.bottom, scale.top, shown.view.start_offset]
        low, high, at = scale.drawn(np.array(edges)).tolist()
        if low > slider.max:
            slider.max = high
            slider.min = low
        else:
            slider.min = low
            slider.max = high
        slider.value = at

    def _draw_rows(self) -> None:
        shown = self._shown
        if shown is None:
            return
        ui = self._ui
        where, kind = self._zone(), ui.format.value
        tail = isinstance(shown.ask.where, Latest)
        ui.table.value = table_html(rows(shown, where, kind), tail=tail)
        opened = self._opened_offset
        with self._quiet():
            ui.opened.value = _NONE if opened is None else opened
        ui.history.disabled = opened is None
        if opened is None:
            ui.record.value = ""
            hide(ui.full)
            return
        record = self._record(opened)
        row = shown.records["offset"].to_pylist().index(opened)
        ui.record.value = marked_row_html(self._css_class, opened) + record_html(
            record, shown.tiers[row], where, kind, ui.full.value
        )
        (unhide if is_long(record) else hide)(ui.full)

    def _draw_segments(self) -> None:
        """Draws the segments of the shown partition, once they are read."""
        shown = self._shown
        if shown is None:
            return
        topic, partition = self._drawn = shown.view.topic, shown.view.partition

        def work(_: Job) -> SegmentMap:
            return segment_map(self._open(topic).log, partition)

        def then(found: SegmentMap) -> None:
            ui = self._ui
            with self._quiet():
                ui.segment.options = [("–", _NONE), *found.choices]
            output = {"output_type": "display_data", "data": found.bundle, "metadata": {}}
            ui.segment_map.outputs = (output,)
            for widget in (ui.segment, ui.segment_map):
                unhide(widget)
            if self._failed == self._draw_segments:
                self._succeed()

        self._drawing.start(work, then, self._fails(self._draw_segments, beside=True))

    def _record(self, offset: int) -> Record:
        shown = self._shown
        offsets = [] if shown is None else shown.records["offset"].to_pylist()
        if shown is None or offset not in offsets:
            raise InvalidArgumentError(
                f"offset {offset} is not on the page; seek({offset}) shows it", offset=offset
            )
        topic_partition = TopicPartition(shown.view.topic, shown.view.partition)
        return to_records(topic_partition, shown.records.slice(offsets.index(offset), 1))[0]

    def _draw_topics(self, names: Sequence[str], *, all_there_are: bool = False) -> None:
        """Offers topics.

        Args:
            all_there_are: whether a topic that is asked for, but not among them, is none.
        """
        topic = self._ask.topic
        is_known = topic in names
        options = [*names] if is_known or all_there_are or not topic else sorted([*names, topic])
        with self._quiet():
            if [*self._ui.topic.options] != options:
                self._ui.topic.options = options
            if topic:
                self._ui.topic.value = topic if topic in options else None

    def _draw_progress(self, progress: Progress) -> None:
        text = (
            f"{progress.records:,} records, {progress.bytes / 1e6:,.1f} MB read; "
            f"{progress.matches:,} matches; at offset {progress.at_offset:,}"
        )
        self._ui.progress.value = (
            f'<span class="ll-busy"><progress max="1" value="{progress.share:.3f}"></progress>'
            f"{text}</span>"
        )

    def _busy(self, text: str, *, stoppable: bool = False) -> None:
        self._ui.progress.value = f'<span class="ll-busy"><progress></progress>{text}</span>'
        self._ui.stop.disabled = not stoppable

    def _idle(self) -> None:
        self._ui.progress.value = ""
        self._ui.stop.disabled = True
        with self._quiet():
            self._ui.follow.value = False

    def _succeed(self) -> None:
        self.error = None
        self._failed = None
        self._ui.error.value = ""
        hide(self._ui.error)
        hide(self._ui.retry)

    def _fails(
        self, again: Callable[[], Any], *, beside: bool = False
    ) -> Callable[[Exception], None]:
        """A function that shows an error, with a way to ask again.

        Args:
            beside: a page may still be under way.
        """

        def failed(error: Exception) -> None:
            self._opened_topics.clear()  # the name may belong to another topic by now
            self._go_by_the_pickers()
            if _is_gone(error):
                left = [name for name in self._ui.topic.options if name != self._ask.topic]
                self._draw_topics(left, all_there_are=True)
            if not beside:
                self._idle()
            self._show_error(error, again)

        return failed

    def _go_by_the_pickers(self) -> None:
        """Makes the next question ask for the picked partition, not for one that failed."""
        ask, shown, ui = self._ask, self._shown, self._ui
        if shown is None:
            return
        if ui.topic.value not in (ask.topic, None):
            self._ask = replace(ask, topic=ui.topic.value, partition=ui.partition.value)
        elif shown.view.topic == ask.topic:
            self._ask = replace(ask, partition=ui.partition.value)

    def _show_error(self, error: Exception, again: Callable[[], Any]) -> None:
        self.error = error
        self._failed = again
        text = str(error) if isinstance(error, LakelogError) else f"{type(error).__name__}: {error}"
        self._ui.error.value = f'<div class="ll-error" role="alert">{escape(text)}</div>'
        unhide(self._ui.error)
        unhide(self._ui.retry)

    def _zone(self) -> Any:
        try:
            return zone_named(self._ui.zone.value)
        except InvalidArgumentError:
            return zone_named(UTC)

    # -- input -----------------------------------------------------------------------------------

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """What this thread sets on the widgets meanwhile does not count as the user's input."""
        before = getattr(self._quietly, "on", False)
        self._quietly.on = True
        try:
            yield
        finally:
            self._quietly.on = before

    def _connect(self) -> None:
        ui = self._ui
        self._on_change(ui.topic, self._chose_topic)
        self._on_change(ui.partition, self._chose_partition)
        self._on_change(ui.offset, self._typed_offset)
        self._on_change(ui.slider, self._slid)
        self._on_change(ui.timestamp, self._typed_time)
        self._on_change(ui.zone, self._chose_zone)
        self._on_change(ui.page_records, self._chose_page_records)
        self._on_change(ui.format, lambda _: self._draw_rows())
        self._on_change(ui.full, lambda _: self._draw_rows())
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
        self._on_click(ui.back, lambda: self._start(self._turned(forward=False)))
        self._on_click(ui.forward, lambda: self._start(self._turned(forward=True)))
        self._on_click(ui.scan, self._clicked_scan)
        self._on_click(ui.stop, self.stop)
        self._on_click(ui.clear, self._clicked_clear)
        self._on_click(ui.history, self._clicked_history)
        self._on_click(ui.retry, self._clicked_retry)

    def _on_change(self, widget: Any, do: Callable[[Any], Any]) -> None:
        def changed(change: Any) -> None:
            if not getattr(self._quietly, "on", False):
                self._guarded(lambda: do(change["new"]))

        widget.observe(changed, names="value")

    def _on_click(self, button: Any, do: Callable[[], Any]) -> None:
        button.on_click(lambda _: self._guarded(do))

    def _guarded(self, do: Callable[[], Any]) -> None:
        """Shows an error also for input that is not even a question (such as an invalid time)."""
        with self._background.lock:
            try:
                do()
            except Exception as error:
                # This input is the newest: work under way would cover its error and run on unseen.
                self._background.drop()
                self._idle()
                self._show_error(error, lambda: self._guarded(do))

    def _turned(self, *, forward: bool) -> Ask:
        """As `_next`, for what is shown now: a click does not wait."""
        if self._shown is None:
            return self._ask
        return self._shown.ask_forward if forward else self._shown.ask_back

    def _go(self, where: Position) -> None:
        self._start(replace(self._ask, where=where, history=False))

    def _chose_topic(self, topic: str) -> None:
        self._clear_boxes()
        ask = replace(
            self._ask, topic=topic, partition=0, where=Earliest(), match=Always(), history=False
        )
        self._start(ask)

    def _chose_partition(self, partition: int) -> None:
        self._start(replace(self._ask, partition=partition, where=Earliest(), history=False))

    def _typed_offset(self, offset: int) -> None:
        self._seek_by_time = False
        self._go(position(offset))

    def _slid(self, at: int) -> None:
        if self._shown is not None:
            at = int(scale_of(self._shown.offsets).offsets(np.array([at]))[0])
        self._typed_offset(at)

    def _typed_time(self, text: str) -> None:
        self._seek_by_time = bool(text.strip())
        if text.strip():
            self._seek_time(text)
        else:
            self._ui.taken.value = ""

    def _seek_time(self, text: str) -> None:
        self._ui.taken.value = ""
        zone, now = zone_named(self._ui.zone.value), datetime.now(timezone.utc)
        time = read_time(text, zone, now)
        self._ui.taken.value = taken_html(time, zone, now)
        self._go(at_time(time))

    def _chose_zone(self, name: str) -> None:
        try:
            zone_named(name)
        except InvalidArgumentError as error:
            self._zone_error = error
            raise
        if self.error is not None and self.error is self._zone_error:
            self._succeed()
        self._draw_rows()

    def _chose_page_records(self, records: int) -> None:
        self._start(replace(self._from_here(), page_records=records))

    def _chose_record(self, offset: int) -> None:
        self._opened_offset = None if offset == _NONE else offset
        with self._quiet():
            self._ui.full.value = False
        self._draw_rows()

    def _toggled_follow(self, on: bool) -> None:
        if on:
            self._start_following()
        else:
            self.stop()

    def _toggled_segments(self, on: bool) -> None:
        ui = self._ui
        if on:
            self._draw_segments()
            return
        self._drawing.drop()
        self._drawn = None
        for widget in (ui.segment, ui.segment_map):
            hide(widget)

    def _chose_segment(self, offset: int) -> None:
        if offset != _NONE:
            self._go(AtOffset(offset))

    def _refresh(self) -> None:
        self._drawn = None  # draw its segments again, too
        if self._ask.topic:
            self._ask = self._from_here()
        self._load_topics()

    def _clicked_seek(self) -> None:
        if self._seek_by_time:
            self._seek_time(self._ui.timestamp.value)
        else:
            self._typed_offset(self._ui.offset.value)

    def _clicked_scan(self) -> None:
        ui = self._ui
        match = parse(ui.search.value, zone_named(ui.zone.value))
        limit = ScanLimit(ui.limit_records.value, ui.limit_mib.value * _MIB)
        self._start(replace(self._from_here(), match=match, limit=limit, history=False))

    def _clicked_clear(self) -> None:
        self._clear_boxes()
        self._start(replace(self._from_here(), match=Always(), history=False))

    def _clear_boxes(self) -> None:
        with self._quiet():
            self._ui.search.value = ""

    def _clicked_history(self) -> None:
        if self._opened_offset is not None:
            self._start(history_of(self._ask, self._record(self._opened_offset).key))

    def _clicked_retry(self) -> None:
        if self._failed is not None:
            self._failed()


def _same_partition(before: View | None, now: View) -> bool:
    return before is not None and (before.topic, before.partition) == (now.topic, now.partition)


def _is_gone(error: Exception) -> bool:
    """Whether there is no such topic; one that lacks a partition is there."""
    if isinstance(error, UnknownTopicOrPartitionError):
        return error.partition is None
    return isinstance(error, UnknownTopicIdError)


def _note(text: str) -> str:
    return f'<div class="ll-note">{escape(text)}</div>'

"""`LogExplorer`: browse a log in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pyarrow as pa
from msgspec.structs import replace

from ...base.text_table import counted
from ...errors import InvalidArgumentError, LakelogError, MissingExtraError
from ...read.consumer_config import check_count
from ...read.found import SearchLimit
from ...read.where import Always, parse
from ...values.offsets import PositionLike, position
from ...values.record import Record
from ..link import Link
from .background import AnyThread, Job, MainThread
from .controls import Controls
from .handlers import Handlers
from .key_history import history_of
from .questions import NO_TOPICS, Questions
from .rows import columns_of, kept_html, page_text, row_name, rows
from .saved_output import SavedOutput
from .screen import Screen
from .shown_code import PYTHON, code, link_of, shortened
from .shown_files import save
from .view import DEFAULT_PAGE_RECORDS, Ask, Shown, Source, View

#: How long to wait for a page before something is shown. A page that comes in time is part of the
#: first output, also as text where there are no widgets.
_QUICK_S = 0.5


class LogExplorer(widgets.VBox):  # type: ignore[misc]
    """Shows a page of a topic's records, from either tier, and moves where it is told.

    A click starts a read off the main thread: the widget says at once that it is busy, and the
    newest question wins. While Redis does not answer, it shows archived records beside the error.
    Errors stay below the table, with a button to ask again, until something succeeds. The methods
    here do the same, but return when the page is shown, and raise errors.

    Attributes of use in code: `expression`, `data`, `view`, `error`, `wait`.

    Args:
        topic: the one to begin with; None: the first by name.
        partition: the one to begin with; None: all of them, merged by time.
        at: where to begin; see `values.offsets.position`.
        where: which records; see `TopicLog.search`.
        page_records: rows of a page.
        main_thread: see `Lakelog.explore`.

    Raises:
        UnknownTopicOrPartitionError: no such topic or partition.
        InvalidArgumentError: not a position, or not an expression.
    """

    def __init__(
        self,
        source: Source,
        topic: str | None = None,
        partition: int | None = None,
        at: PositionLike = "earliest",
        where: str = "",
        *,
        page_records: int = DEFAULT_PAGE_RECORDS,
        main_thread: bool = False,
    ) -> None:
        begin, match = position(at), parse(where)
        page_records = check_count("page_records", page_records)
        ui = Controls()
        super().__init__(children=ui.rows())
        css_class = f"ll-{self.model_id}"  # this explorer's own
        self.add_class("lakelog-explorer")
        self.add_class(css_class)
        ask = Ask(topic or "", partition, begin, match, page_records)
        self._screen = Screen(ui, css_class)
        shown_by = MainThread() if main_thread else AnyThread()
        self._saved = SavedOutput(css_class, ui.table, self._kept, shown_by)
        self._questions = Questions(self._screen, source, ask, lambda: self.comm is None, shown_by)
        with self._screen.quiet():
            self._screen.search_for(where)
            if page_records not in ui.page_records.options:
                ui.page_records.options = sorted({*ui.page_records.options, page_records})
            ui.page_records.value = page_records
        self._handlers = Handlers(self._screen, self._questions)
        self._begin(topic, partition)

    # -- what is shown, as code and as data ------------------------------------------------------

    @property
    def error(self) -> Exception | None:
        """Why the newest question has no answer; None: it has one."""
        return self._questions.error

    @property
    def view(self) -> View:
        """The ranges of the rows shown, and what they match.

        Raises:
            LakelogError: nothing could be shown yet; this is why.
        """
        return self._page().view

    @property
    def expression(self) -> str:
        """The call that gives the rows shown, such as ``log.read(0, 100, 150)``, where `log` is
        ``lakelog.log(topic)``.
        """
        return self.view.expression

    def data(self) -> pa.Table:
        """The rows shown: a `RECORDS` table, with the partition before if they are of all
        partitions.

        Raises:
            LakelogError: nothing could be shown yet; this is why.
        """
        return self._page().records

    def to_pandas(self) -> Any:
        """The same as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
            LakelogError: nothing could be shown yet; this is why.
        """
        try:
            return self.data().to_pandas()
        except ImportError as error:
            raise MissingExtraError(
                "pandas is not installed; pip install 'lakelog[explore]'"
            ) from error

    def code(self, form: str = PYTHON) -> str:
        """The rows shown as code, where `lake` is the `Lakelog`.

        Args:
            form: one of `shown_code.CODES`: Python, Spark DataFrame, Spark SQL, command line, link.

        Raises:
            InvalidArgumentError: another form.
            LakelogError: nothing could be shown yet; this is why.
        """
        return code(self._page(), form, self._screen.picked())

    def export(self, path: str | Path, *, everything: bool = False) -> int:
        """Writes the rows shown to a file, and returns how many they are.

        Args:
            path: ends in ``.csv``, ``.jsonl`` or ``.parquet``.
            everything: all that the search finds, not the page alone.

        Raises:
            InvalidArgumentError: another ending.
            LakelogError: nothing could be shown yet, or what was found cannot be read.
            OSError: the file cannot be written.
        """
        shown = self._page()
        if not everything:
            return save(shown.view, [shown.records], path)
        ask = shown.ask
        log = self._questions.open(ask.topic).log
        partitions = None if ask.partition is None else [ask.partition]
        found = log.search(ask.match, *ask.span, partitions=partitions)
        return save(replace(shown.view, partition=None), found, path)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the last answer, or its error, is shown; False if the time is over."""
        questions = self._questions
        every = (questions.background, questions.drawing, questions.picturing, questions.sending)
        return all(one.wait(timeout_s) for one in every)

    # -- going somewhere -------------------------------------------------------------------------

    def seek(self, to: PositionLike) -> LogExplorer:
        """Shows the page that begins at a position; for the end, the last page.

        Args:
            to: an offset, a name, a time, a distance from now; see `values.offsets.position`.
        """
        ask = replace(self._questions.ask, where=position(to), history=False)
        return self._asked(self._questions.start(ask))

    def forward(self) -> LogExplorer:
        """Shows the page after this one."""
        return self._turned(forward=True)

    def back(self) -> LogExplorer:
        """Shows the page before this one."""
        return self._turned(forward=False)

    def choose(
        self, topic: str, partition: int | None = None, at: PositionLike = "earliest"
    ) -> LogExplorer:
        """Shows another topic or partition, or all of them, without a filter."""
        ask = Ask(topic, partition, position(at), Always(), self._questions.ask.page_records)
        return self._asked(self._questions.start(ask))

    def search(
        self,
        where: str = "",
        start: PositionLike = "earliest",
        end: PositionLike = "latest",
        *,
        max_records: float | None = None,
        max_bytes: float | None = None,
    ) -> LogExplorer:
        """Shows the first records of [start, end) that match, in the order of time.

        Args:
            where: see `TopicLog.search`; without it, all records.
            start, end: of what is searched. `back` and `forward` stay within, too.
            max_records, max_bytes: the most to read for a page; default: all it takes.
        """
        given = {"records": max_records, "bytes": max_bytes}
        limit = SearchLimit(**{name: most for name, most in given.items() if most is not None})
        begin = position(start)
        ask = replace(
            self._questions.ask,
            where=begin,
            match=parse(where),
            limit=limit,
            history=False,
            span=(begin, position(end)),
        )
        return self._asked(self._questions.start(ask))

    def history(self, key: str | bytes) -> LogExplorer:
        """Shows the versions of a key, from both tiers, the newest page first."""
        data = key.encode() if isinstance(key, str) else key
        return self._asked(self._questions.start(history_of(self._questions.ask, data)))

    def follow(self) -> LogExplorer:
        """Shows the tail as it grows, until something else is asked for or `stop` is called."""
        return self._asked(self._questions.follow())

    def stop(self) -> None:
        """Ends a search with what it has, or the following of the tail."""
        self._questions.stop()

    def go(self, link: Link) -> LogExplorer:
        """Begins to show what a link of `lakelog explore` names, and opens its record.

        Raises:
            InvalidArgumentError: its position or its expression is none.
        """
        page_records = self._questions.ask.page_records
        ask = Ask(link.name, link.partition, link.position, parse(link.where), page_records)
        if link.partition is not None and link.offset is not None:
            self._screen.to_open = row_name(link.partition, link.offset)
        self._questions.start(ask)
        return self

    def open_record(self, partition: int, offset: int) -> None:
        """Opens a record beside the table, once it is there."""
        screen = self._screen
        with self._questions.background.lock:
            screen.to_open = row_name(partition, offset)
            if screen.has(screen.to_open):
                screen.opened, screen.to_open = screen.to_open, None
                screen.draw_rows()

    @property
    def link(self) -> Link:
        """What is shown, as a link of `lakelog explore`; the topics, while nothing is."""
        shown, opened = self._screen.shown, self._screen.opened
        if shown is None:
            return Link()
        return link_of(shown, next((one for one in shown.places if row_name(*one) == opened), None))

    def on_shown(self, call: Callable[[], None]) -> None:
        """Has something called when other rows are shown, or another record is open."""
        self._screen.drawn = call

    def record(self, offset: int, partition: int | None = None) -> Record:
        """Opens a record of the page beside the table, and returns all of it.

        Args:
            partition: needed where the page has that offset of several.

        Raises:
            InvalidArgumentError: the page does not hold it, or holds several.
        """
        self.wait()
        with self._questions.background.lock:
            shown = self._screen.shown
            places = [] if shown is None else shown.places
            found = [one for one in places if one[1] == offset and partition in (None, one[0])]
            if not found:
                raise InvalidArgumentError(
                    f"offset {offset} is not on the page; seek({offset}) shows it", offset=offset
                )
            if len(found) > 1:
                raise InvalidArgumentError(
                    f"the page has offset {offset} of partitions "
                    f"{', '.join(str(number) for number, _ in found)}: say which",
                    offset=offset,
                )
            self._screen.opened = row_name(*found[0])
            self._screen.draw_rows()
            return self._screen.record(self._screen.opened)[0]

    def close(self) -> None:
        """Closes the widget, and ends its reads."""
        questions = getattr(self, "_questions", None)
        if questions is not None:
            questions.stop()
            questions.drop()
        super().close()
        saved = getattr(self, "_saved", None)
        if saved is not None:
            saved.close()
        screen = getattr(self, "_screen", None)
        for widget in [] if screen is None else screen.ui.all():
            widget.close()

    # -- as text ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown, ask = self._screen.shown, self._questions.ask
        if shown is None:
            said = f"{self.error}" if self.error else "reading …"
            if not ask.topic and self._questions.background.wait(0):
                return f"LogExplorer: {self.error or NO_TOPICS}"
            of = ask.topic if ask.partition is None else f"{ask.topic}-{ask.partition}"
            return f"LogExplorer({of}): {said}"
        found = rows(shown, self._screen.zone(), self._screen.ui.format.value)
        view = shown.view
        if view.partition is None:
            log = f"{view.topic}, {counted(shown.partitions, 'partition')}"
        else:
            held = shown.offsets[view.partition]
            log = f"{view.topic}-{view.partition} [{held.log_start}, {held.log_end})"
        lines = [
            f"{log}  {shortened(view.expression)}",
            page_text(found, columns_of(shown)),
            *shown.notes,
        ]
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
        screen, shown, text = self._screen, self._screen.shown, repr(self)
        if shown is None:
            return f"<div>{escape(text)}</div>", text
        call = shortened(code(shown, PYTHON))
        return kept_html(shown, screen.zone(), screen.ui.format.value, call), text

    # -- how -------------------------------------------------------------------------------------

    def _begin(self, topic: str | None, partition: int | None) -> None:
        questions = self._questions
        if topic is not None:
            try:
                opened = questions.open(topic)
                if partition is not None:
                    opened.log.topic.partition(partition)
            except (InvalidArgumentError, KeyError):  # the call was wrong
                self.close()
                raise
            except LakelogError:
                pass  # Redis is away: reading the page shows the error, with a button to try again
        job = questions.load_topics() if topic is None else questions.start(questions.ask)
        # A slower answer is shown when it comes.
        questions.background.shown_by.wait(job.done, _QUICK_S)

    def _page(self) -> Shown:
        self.wait()
        shown = self._screen.shown
        if shown is None:
            raise self.error or InvalidArgumentError("there is no topic to show yet")
        return shown

    def _turned(self, *, forward: bool) -> LogExplorer:
        self.wait()
        return self._asked(self._questions.start(self._questions.turned(forward=forward)))

    def _asked(self, job: Job) -> LogExplorer:
        try:
            self._questions.background.shown_by.wait(job.done)
        except KeyboardInterrupt:
            self.stop()
            raise
        if job.error is not None:
            raise job.error
        return self

"""What the explorer is asked: questions are answered off the main thread, and the newest counts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from ...errors import (
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ...read.found import Progress
from ...read.topic_log import TopicLog
from ...values.offsets import AtOffset, Latest
from .. import charts
from ..charts.shown import bundle
from ..picture import Picture, pictures
from .answer import answer
from .background import AnyThread, Background, Job
from .controls import ALL
from .follow import follow
from .resend import Resend
from .screen import Screen
from .view import Ask, Cut, OpenedTopic, Shown, Source

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Between two pictures of a tail that is followed.
_PICTURE_S = 2.0

NO_TOPICS = "there are no topics; lake.deleted() lists those that may be brought back"


class Questions:
    """Asks a log, and has the answers, or their errors, shown.

    Args:
        ask: the first question.
        is_closed: whether nobody looks any more.
        shown_by: draws what was found.

    Attributes:
        ask: the newest question.
        error: why the newest has no answer.
        failed: asks again what failed.
    """

    def __init__(
        self,
        screen: Screen,
        source: Source,
        ask: Ask,
        is_closed: Callable[[], bool],
        shown_by: AnyThread,
    ) -> None:
        self.ask = ask
        self.error: Exception | None = None
        self.failed: Callable[[], Any] | None = None
        self.background = Background(shown_by=shown_by)
        self.drawing = Background(beside=self.background)  # of segments
        self.picturing = Background(beside=self.background)
        self.sending = Background(beside=self.background)
        self.window: tuple[int, int] | None = None  # of the picture; None: all the time there is
        self._pictured: tuple[object, ...] | None = None  # what it is of
        self._picture_s = 0.0
        self._drawn: tuple[str, int] | None = None  # the topic and partition that they belong to
        self._screen = screen
        self._source = source
        self._is_closed = is_closed
        self._opened: dict[str, OpenedTopic] = {}

    @property
    def may_write(self) -> bool:
        return self._source.producer_of is not None

    # -- what can be asked -----------------------------------------------------------------------

    def start(self, ask: Ask) -> Job:
        """Asks, and shows the answer."""
        self.ask = ask  # at once: a second click changes this question, not the one before
        screen = self._screen
        screen.busy("searching …" if ask.is_search else "reading …", stoppable=ask.is_search)

        def work(job: Job) -> tuple[Shown, list[str] | None]:
            shown = self._answer(ask, job)
            is_needed = ask.topic not in screen.ui.topic.options and shown.error is None
            return shown, sorted(self._source.topics()) if is_needed else None

        def then(found: tuple[Shown, list[str] | None]) -> None:
            shown, names = found
            if names is not None:
                screen.topics(names, ask.topic)
            self.show(shown)
            if shown.error is not None:
                self.fails(lambda: self.start(ask))(shown.error)

        return self.background.start(work, then, self.fails(lambda: self.start(ask)))

    def load_topics(self) -> Job:
        """Reads the names, and shows the topic that is chosen or the first."""
        screen = self._screen

        def work(job: Job) -> tuple[list[str], Shown | None]:
            names = sorted(self._source.topics())
            ask = self.ask
            if not ask.topic and names:
                ask = replace(ask, topic=names[0])

            def draw() -> None:
                self.ask = ask
                screen.topics(names, ask.topic, all_there_are=True)

            # Even if the page fails: the names let the user leave a topic that is gone.
            self.background.only_if_newest(job, draw)
            return names, self._answer(ask, job) if ask.topic else None

        def then(found: tuple[list[str], Shown | None]) -> None:
            _, shown = found
            if shown is None:
                self.succeed()
                screen.idle()
                screen.note(NO_TOPICS)
            else:
                self.show(shown)

        screen.busy("looking …")
        return self.background.start(work, then, self.fails(self.load_topics))

    def follow(self) -> Job:
        """Shows the tail as it grows, until something else is asked."""
        ask = self.ask = replace(self.ask, where=Latest(), history=False)
        screen = self._screen
        screen.following()
        with screen.quiet():
            screen.ui.follow.value = True  # once: a page that is drawn later must not undo a click

        def work(job: Job) -> Shown:
            is_begun = False

            def on_shown(shown: Shown) -> None:
                def show() -> None:
                    nonlocal is_begun
                    if is_begun and screen.holds:
                        return  # since this page was begun: it would close the record
                    is_begun = True
                    self.succeed()
                    self.ask = shown.ask
                    self._tell_columns(ask.topic)
                    screen.show(shown)
                    self._draw_picture(shown, following=True)
                    screen.following()
                    job.done.set()

                self.background.only_if_newest(job, show)

            def on_new(records: int) -> None:
                if screen.holds:
                    self.background.only_if_newest(job, lambda: screen.new(records))

            def on_outage(error: LakelogError | None) -> None:
                def show() -> None:
                    if error is None:
                        self.succeed()
                        screen.following()
                    elif str(error) != str(self.error):
                        self.show_error(error, self.follow)
                        screen.busy("it is asked again until it answers …", stoppable=True)

                self.background.only_if_newest(job, show)

            return follow(
                self.open(ask.topic),
                ask,
                on_shown=on_shown,
                drawn=lambda: screen.shown,
                on_new=on_new,
                on_outage=on_outage,
                holds=lambda: screen.holds,
                stopped=lambda: job.stopped() or self._is_closed(),
            )

        return self.background.start(work, lambda _: screen.idle(), self.fails(self.follow))

    def draw_segments(self) -> None:
        """Draws the segments of the shown partition, once they are read."""
        shown = self._screen.shown
        if shown is None:
            return
        if shown.view.partition is None:
            raise InvalidArgumentError("segments are a partition's: choose one")
        topic, partition = self._drawn = shown.view.topic, shown.view.partition

        def work(_: Job) -> tuple[list[tuple[str, int]], dict[str, Any]]:
            return segment_map(self.open(topic).log, partition)

        def then(found: tuple[list[tuple[str, int]], dict[str, Any]]) -> None:
            self._screen.segments(*found)
            if self.failed == self.draw_segments:
                self.succeed()

        self.drawing.start(work, then, self.fails(self.draw_segments, beside=True))

    def forget_segments(self) -> None:
        """They are not to be drawn any more, or again."""
        self.drawing.drop()
        self._drawn = None

    def send(self, record: Resend) -> None:
        """Appends a record, and says where."""
        producer_of = self._source.producer_of
        assert producer_of is not None

        def work(_: Job) -> str:
            with producer_of() as producer:
                sent = producer.send(
                    record.topic, record.value, key=record.key, headers=record.headers
                )
                at = sent.result()
            return f"appended to {at.topic}-{at.partition} at offset {at.offset:,}"

        def failed(error: Exception) -> None:
            # It may have been appended: Retry takes the error away, and Send asks once more.
            self.show_error(error, self.succeed)

        self.sending.start(work, self._screen.form.withdraw, failed)

    def stop(self) -> None:
        """Ends a search with what it has, or the following of the tail."""
        self.background.stop()
        with self._screen.quiet():
            self._screen.ui.follow.value = False

    def drop(self) -> None:
        """Nobody waits for an answer any more."""
        # What is being sent is sent.
        for background in (self.background, self.drawing, self.picturing):
            background.drop()

    def look_at(self, window: tuple[int, int] | None) -> None:
        """Draws the picture of a part of the time, or of all of it."""
        self.window = window
        if self._screen.shown is not None:
            self._draw_picture(self._screen.shown)

    # -- from where ------------------------------------------------------------------------------

    def open(self, topic: str) -> OpenedTopic:
        """The topic's log, opened once."""
        if not topic:
            raise InvalidArgumentError("there is no topic to show yet: create one, then press ↻")
        opened = self._opened.get(topic)
        if opened is None:
            opened = self._opened[topic] = OpenedTopic(self._source.log_of(topic))
        return opened

    def turned(self, *, forward: bool) -> Ask:
        """The page after the one that is shown, or before it."""
        shown = self._screen.shown
        if shown is None:
            return self.ask
        return shown.ask_forward if forward else shown.ask_back

    def from_here(self) -> Ask:
        """The last question, asked from the start of the page."""
        ask, shown = self.ask, self._screen.shown
        if shown is None or (shown.view.topic, shown.view.partition) != (ask.topic, ask.partition):
            return ask
        if shown.view.partition is not None:
            return replace(ask, where=AtOffset(shown.view.start_offset))
        assert shown.edges is not None
        return replace(ask, where=Cut(shown.edges[0], backward=False))

    # -- what comes of it ------------------------------------------------------------------------

    def show(self, shown: Shown, *, finished: bool = True) -> None:
        """Shows an answer.

        Args:
            finished: nothing more of it is under way.
        """
        self.succeed()
        if finished:
            self._screen.idle()
        self._tell_columns(shown.view.topic)
        self._screen.show(shown)
        self.ask = shown.ask
        self._draw_picture(shown)
        ui = self._screen.ui
        one = shown.view.partition
        if one is not None and ui.segment.value != shown.view.start_offset:
            with self._screen.quiet():
                ui.segment.value = -1  # so that the same segment can be chosen again
        if ui.segments.value and one is None:
            self.forget_segments()
            self._screen.no_segments()
        elif ui.segments.value and self._drawn != (shown.view.topic, one):
            self.draw_segments()

    def succeed(self) -> None:
        """No error is left."""
        self.error = self.failed = None
        self._screen.error(None)

    def fails(
        self, again: Callable[[], Any], *, beside: bool = False
    ) -> Callable[[Exception], None]:
        """A function that shows an error, with a way to ask again.

        Args:
            beside: a page may still be under way.
        """

        def failed(error: Exception) -> None:
            self._opened.clear()  # the name may belong to another topic by now
            self._go_by_the_pickers()
            if _is_gone(error):
                screen, topic = self._screen, self.ask.topic
                left = [name for name in screen.ui.topic.options if name != topic]
                screen.topics(left, topic, all_there_are=True)
            if not beside:
                self._screen.idle()
            self.show_error(error, again)

        return failed

    def show_error(self, error: Exception, again: Callable[[], Any]) -> None:
        """Shows an error, with a way to ask again."""
        self.error = error
        self.failed = again
        self._screen.error(error)

    # -- how -------------------------------------------------------------------------------------

    def _answer(self, ask: Ask, job: Job) -> Shown:
        def on_progress(progress: Progress) -> None:
            self.background.only_if_newest(job, lambda: self._screen.progress(progress))

        def on_first(shown: Shown) -> None:
            self.background.only_if_newest(job, lambda: self.show(shown, finished=False))

        def of(opened: OpenedTopic) -> Shown:
            return answer(
                opened, ask, on_progress=on_progress, stopped=job.stopped, on_first=on_first
            )

        shown, error = self._with_archived(ask.topic, of)
        return replace(shown, error=error)

    def _positions(self, log: TopicLog) -> Mapping[str, Mapping[int, int]]:
        """How far groups have come; nothing where that cannot be told: the picture is the thing."""
        positions_of = self._source.positions_of
        try:
            return {} if positions_of is None else positions_of(log.topic)
        except LakelogError as error:
            logger.info("how far groups have come in %s is not known: %s", log.topic.name, error)
            return {}

    def _with_archived(
        self, topic: str, do: Callable[[OpenedTopic], T]
    ) -> tuple[T, Exception | None]:
        """What comes of the topic's log; of its archive alone while Redis does not answer."""
        try:
            return do(self.open(topic)), None
        except HotTierUnavailableError as error:
            if self._source.archived_of is None:
                raise
            try:
                return do(OpenedTopic(self._source.archived_of(topic))), error
            except LakelogError:
                raise error from None  # that error is the one to mend

    def _draw_picture(self, shown: Shown, *, following: bool = False) -> None:
        """Draws it in the background, if there is something new to it."""
        view, screen = shown.view, self._screen
        before = self._pictured
        if before is not None and before[:2] != (view.topic, view.partition):
            self.window = None
        edges = tuple((one.log_start, one.log_end) for one in shown.offsets.values())
        of = (view.topic, view.partition, self.window, edges)
        now_s = time.monotonic()
        if of == before or (following and now_s - self._picture_s < _PICTURE_S):
            return
        self._pictured, self._picture_s = of, now_s
        window, partitions = self.window, [*shown.offsets]
        looks = [] if shown.look is None else [shown.look]

        def draw(picture: Picture) -> None:
            screen.pictured = picture
            screen.draw_picture()

        def work(job: Job) -> Picture:
            def of(opened: OpenedTopic) -> Picture:
                return pictures(
                    opened.log,
                    looks.pop() if looks else opened.look(partitions),  # the page's own first
                    window,
                    positions=self._positions(opened.log),
                    fine=not following,
                    on_coarse=lambda one: self.picturing.only_if_newest(job, lambda: draw(one)),
                    stopped=job.stopped,
                )

            return self._with_archived(view.topic, of)[0]

        def failed(error: Exception) -> None:
            self._pictured = None
            screen.told(f"no picture: {error}")

        self.picturing.start(work, draw, failed)

    def _tell_columns(self, topic: str) -> None:
        opened = self._opened.get(topic)
        if opened is not None:
            self._screen.tell_columns(topic, opened.log.topic.config.value_columns)

    def _go_by_the_pickers(self) -> None:
        """Makes the next question ask for the picked partition, not for one that failed."""
        ask, shown, ui = self.ask, self._screen.shown, self._screen.ui
        if shown is None:
            return
        picked = None if ui.partition.value == ALL else ui.partition.value
        if ui.topic.value not in (ask.topic, None):
            self.ask = replace(ask, topic=ui.topic.value, partition=picked)
        elif shown.view.topic == ask.topic:
            self.ask = replace(ask, partition=picked)


def segment_map(log: TopicLog, partition: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """The segments of both tiers as of now, to go to, and as a drawing; reads no records."""
    rows = charts.segment_rows(log, [partition])
    choices = [(label, offset) for label, (_, offset) in charts.segment_choices(rows, partition)]
    return choices, bundle(charts.segment_map(rows))


def _is_gone(error: Exception) -> bool:
    """Whether there is no such topic; one that lacks a partition is there."""
    if isinstance(error, UnknownTopicOrPartitionError):
        return error.partition is None
    return isinstance(error, UnknownTopicIdError)

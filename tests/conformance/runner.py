"""Runs the cases of ``cases.yml``: what each word of their steps does, and what is looked at.

A case runs on a topic of its own, in a real Redis and a real Delta table, with a manual clock; once
for each way its records may lie (``layouts``). A step is an action, ``do_…`` below; ``expect``
beside it says what must be seen then, ``see_…``, and ``error`` which error it must end in.
``meanwhile`` names a failpoint and another action, which is taken when the first comes by there;
``crash_at`` names one where the step ends as if it were killed.

| layout   |                                                                                     |
|----------|-------------------------------------------------------------------------------------|
| untiered | the topic has no cold tier; retention happens as records are appended               |
| tiered   | it has one; the records stay in Redis until a step moves them                       |
| split    | as tiered, and ``place`` archives the older half of the records and trims them      |
| cold     | as tiered, and ``place`` archives all records and trims them                        |

Segments are those that hold a record. A log that is new or has forgotten everything has an empty
active one in Kafka, so that its tests count one where these cases count none.

Sizes are given as ``5 records`` (the largest of the case's first append, as Redis has it) or, for
``retention.bytes``, as ``2 segments`` (the newest, as they are stored where they are counted).
Times are milliseconds, ``none``, or ``now`` with distances: ``now-24h-5m``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pure
from case_log import duration_ms
from sights import Sights

from lakelog import errors
from lakelog.base.failpoints import armed
from lakelog.cleanup import compaction
from lakelog.cleanup.report import CleanupReport
from lakelog.cleanup.superseded import TooManyKeys, find_superseded
from lakelog.cold.change import Change
from lakelog.cold.registers import CleanedEnd, LogStart, Register
from lakelog.hot.connection import call_script
from lakelog.hot.fetch import SEGMENTS_AT_ONCE
from lakelog.hot.keys import Keys
from lakelog.values.config import EntryFormat


class Crash(BaseException):
    """Ends a step as a kill would: nothing handles it."""


class Run(Sights):
    """One case on one layout."""

    def run(self) -> None:
        """Take all steps.

        Raises:
            AssertionError: something else was seen than expected; says in which step.
        """
        for number, step in enumerate(self._case.steps):
            actions = step.keys() - {"expect", "error", "meanwhile", "crash_at"}
            assert len(actions) <= 1, f"step {number} of case {self._case.number}: {actions}"
            place = f"case {self._case.number} on {self._layout}, step {number} {dict(step)}"
            with self._disturbed(step, place):
                for action in actions:
                    self._act(action, step[action], step.get("error"), place)
            expected = step.get("expect", {})
            seen = {what: self._see(what, wanted) for what, wanted in expected.items()}
            assert seen == expected, place

    def _act(self, action: str, argument: Any, error: Any, place: str) -> None:
        function = self._action(action)
        if error is None:
            self._answer = function(argument)
            return
        try:
            self._answer = function(argument)
        except errors.LakelogError as raised:
            seen: dict[str, Any] = {"class": type(raised).__name__}
            expected = {"class": error} if isinstance(error, str) else error
            if "says" in expected:  # words of the message
                seen["says"] = expected["says"] if expected["says"] in str(raised) else str(raised)
            for name in expected.keys() - {"class", "says"}:
                value = getattr(raised, name)
                seen[name] = len(value) if isinstance(value, list) else value
            assert seen == expected, place
        else:
            raise AssertionError(f"{place}: no error, but {self._answer!r}")

    def _action(self, name: str) -> Callable[[Any], Any]:
        for one in (self, self._tool):
            if hasattr(one, f"do_{name}"):
                return getattr(one, f"do_{name}")
        return getattr(pure, f"do_{name}")

    @contextmanager
    def _disturbed(self, step: Mapping[str, Any], place: str) -> Iterator[None]:
        """Whatever `meanwhile` and `crash_at` say; a place that nobody comes by is an error."""
        came_by: list[str] = []

        def crash() -> None:
            came_by.append(step["crash_at"])
            raise Crash

        def meanwhile(failpoint: str, actions: Mapping[str, Any]) -> None:
            if failpoint not in came_by:  # once
                came_by.append(failpoint)
                answer = self._answer
                for name, argument in actions.items():
                    self._action(name)(argument)
                self._answer = answer

        with ExitStack() as stack:
            for name, actions in step.get("meanwhile", {}).items():
                stack.enter_context(armed(name, lambda n=name, a=actions: meanwhile(n, a)))
            if "crash_at" in step:
                stack.enter_context(armed(step["crash_at"], crash))
            try:
                yield
            except Crash:
                self.do_reopen(None)
        wanted = {*step.get("meanwhile", ()), *filter(None, [step.get("crash_at")])}
        assert wanted == set(came_by), f"{place}: came by {came_by}"

    def _see(self, what: str, wanted: Any) -> Any:
        for one in (self, self._tool):
            if hasattr(one, f"see_{what}"):
                return getattr(one, f"see_{what}")(wanted)
        return getattr(pure, f"see_{what}")(self._answer, wanted)

    # -- actions ---------------------------------------------------------------------------------

    def do_append(self, what: Any) -> int:
        """Batches of one record, each from a producer of its own; the last one's offset."""
        rows = self._rows({"records": what} if isinstance(what, int) else what)
        for row in rows:
            self._send([row], next(self._producer_ids))
        return int(self._answer.base_offset)

    def do_batch(self, what: Mapping[str, Any]) -> Any:
        """One produced batch."""
        producer = what.get("producer", next(self._producer_ids))
        return self._send(
            self._rows(what),
            producer,
            what.get("epoch", 0),
            what.get("sequence"),
            EntryFormat(what.get("entry", "fields")),
        )

    def do_append_after_holes(self, count: int) -> None:
        """So many records, each behind the hole that a lost tail leaves."""
        for _ in range(count):
            self.do_lose_tail(self._hot().log_end + 1)
            self.do_append(1)

    def do_producer_at(self, what: Mapping[str, int]) -> None:
        """As if the producer had sent all sequences up to this one."""
        sent = what["sequence"]
        producers = Keys(self._lakelog.hot.keyspace).partition(self._tp).all()[4]
        entry = f"{what['epoch']} {self._clock.now_ms()}|{sent} {sent} 0 -1"
        server = self._lakelog.hot._servers.for_key(producers)
        server.call(("HSET", producers, what["producer"], entry))

    def do_advance(self, duration: Any) -> None:
        self._clock.advance(duration_ms(duration))

    def do_create(self, settings: Mapping[str, Any]) -> None:
        """A new topic in place of the case's."""
        self._create(settings)

    def do_alter(self, settings: Mapping[str, Any]) -> None:
        changes = {name: self._size(value) for name, value in settings.items()}
        self._topic = self._lakelog.topics.alter(self._there().name, changes)

    def do_defaults(self, settings: Mapping[str, Any]) -> None:
        """What the keyspace sets for all its topics."""
        self._lakelog.topics.set_defaults(settings)
        self._topic = self._lakelog.topics.get(self._there().name)

    def do_reopen(self, _: Any) -> None:
        """Connect anew: nothing is remembered but what is in Redis and in the table."""
        self._lakelog.close()
        self._lakelog = self._connect()

    def do_archive(self, until: int | str) -> Any:
        """Archive up to an offset or ``all``; local retention applies. Untiered: nothing."""
        if not self._there().config.tiered:
            return None
        (report,) = self._lakelog.archive(self._there().name, "latest" if until == "all" else until)
        return report

    def do_trim(self, before: int) -> None:
        self._lakelog.hot.trim(self._tp, before)

    def do_look(self, _: Any) -> None:
        """Nothing: only what is expected matters."""

    def do_scan_from(self, timestamp_ms: int) -> int | None:
        """Where the hot tier would begin to scan for a timestamp; None: nowhere."""
        hot = self._lakelog.hot
        keys = Keys(hot.keyspace).partition(self._tp).all()
        arguments = (timestamp_ms, "", "", SEGMENTS_AT_ONCE)
        answer = call_script(hot._servers, "find_timestamp", keys, arguments)
        return None if answer[0] == b"NONE" else int(answer[1])

    def do_place(self, _: Any) -> None:
        """Move the records to where the layout wants them."""
        offsets = self._log().offsets()[0]
        middle = (offsets.log_start + offsets.log_end) // 2
        if self._layout in ("split", "cold"):
            self.do_archive(offsets.log_end if self._layout == "cold" else middle)
            self.do_trim(self._cold().archived_end(0))  # not into a gap, which ends no file

    def do_retain(self, _: Any) -> None:
        """What the retention job does, on whichever tier decides."""
        if not self._there().config.tiered:
            self._lakelog.hot.retain(self._tp)
            return
        if self._retention is not None:  # in segments: by now there are some to be measured
            self.do_alter({"retention.bytes": self._retention})
        self._cleanup("retain")

    def do_compact(self, _: Any) -> Any:
        self._full_maps = 0

        def counted(*arguments: Any) -> Any:
            answer = find_superseded(*arguments)
            self._full_maps += isinstance(answer, TooManyKeys)
            return answer

        with mock.patch.object(compaction, "find_superseded", counted):
            return self._cleanup("compact")

    def do_delete_records(self, before: int) -> int:
        return int(self._log().raise_log_start(0, before))

    def do_start_at(self, offset: int) -> None:
        """The log start as a broker sets it itself, which no policy forbids."""
        self._move(LogStart(0), offset)

    def do_cleaned_to(self, offset: int) -> None:
        """As if a compaction had come to there."""
        self._move(CleanedEnd(0), offset)

    def do_lose_tail(self, at_least: int) -> None:
        """What was handed out below is gone: a gap, as wide in all layouts as without cold."""
        self._lakelog.hot.recover(self._tp, at_least)

    # -- how -------------------------------------------------------------------------------------

    def _cleanup(self, step: str) -> CleanupReport:
        (report,) = self._lakelog.cleanup(self._there().name, steps=(step,))
        return report

    def _move(self, register: Register, value: int) -> None:
        table = self._table()
        snapshot = table.snapshot()
        assert not table.apply(Change(registers={register: value}), snapshot).superseded

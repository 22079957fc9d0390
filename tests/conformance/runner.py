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

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pure
from case import Case
from offsets_tool import OffsetsTool

from lakelog import Lakelog, errors
from lakelog.cleanup import compaction
from lakelog.cleanup.dirty import cleanable
from lakelog.cleanup.report import CleanupReport
from lakelog.cleanup.superseded import TooManyKeys, find_superseded
from lakelog.clock import ManualClock
from lakelog.codec import Entry, ProducedBatch, encode
from lakelog.cold.change import Change
from lakelog.cold.registers import CleanedEnd, LogStart, Register
from lakelog.cold.table import ColdSnapshot
from lakelog.config import Compression, EntryFormat, TopicConfig
from lakelog.failpoints import armed
from lakelog.hot.connection import call_script
from lakelog.hot.keys import Keys
from lakelog.offsets import NAMED_POSITIONS, AtTimestamp, HotOffsets, HotSegment
from lakelog.record import Record, TopicPartition, produced_batch, to_records
from lakelog.topic import Topic


class Crash(BaseException):
    """Ends a step as a kill would: nothing handles it."""


class Run:
    """One case on one layout."""

    def __init__(self, case: Case, layout: str, url: str, root: Path) -> None:
        self._case = case
        self._layout = layout
        self._clock = ManualClock()
        self._tool = OffsetsTool(url, root)
        self._connect = lambda: Lakelog.connect(url, root, engine="inline", clock=self._clock)
        self._lakelog = self._connect()
        self._names = (f"case-{case.number}-{n}" for n in itertools.count())
        self._record_bytes = 0  # see _measure
        self._sent: dict[int, tuple[Any, ...]] = {}  # by offset: time, key, value, headers
        self._full_maps = 0  # of the last compaction
        self._producer_ids = itertools.count(1_000_000)
        self._sequences: dict[int, int] = {}
        self._values = itertools.count()
        self._retention: str | None = None  # retention.bytes, where it is given in segments
        self._answer: Any = None  # of the last action, for what `expect` says of it
        self._topic: Topic | None = None  # see _there

    def close(self) -> None:
        self._lakelog.close()

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
        self._clock.advance(_duration_ms(duration))

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
        answer = call_script(hot._servers, "find_timestamp", keys, [timestamp_ms, ""])
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

    def do_vacuum(self, _: Any) -> Any:
        return self._cleanup("vacuum")

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

    # -- what is seen ----------------------------------------------------------------------------

    def _see(self, what: str, wanted: Any) -> Any:
        for one in (self, self._tool):
            if hasattr(one, f"see_{what}"):
                return getattr(one, f"see_{what}")(wanted)
        return getattr(pure, f"see_{what}")(self._answer, wanted)

    def see_answer(self, _: Any) -> Any:
        """What the action gave back."""
        return self._answer

    def see_appended(self, _: Any) -> int:
        """The first offset of the last batch."""
        return int(self._answer.base_offset)

    def see_duplicate(self, _: Any) -> bool:
        return bool(self._answer.duplicate)

    def see_segments(self, _: Any) -> int:
        return len(self.see_bases(None))

    def see_bases(self, _: Any) -> list[int]:
        """Segments that hold a record, in either tier."""
        cold = {segment.base_offset for segment in self._cold().files.segments(0)}
        return sorted(cold | set(self.see_local_bases(None)))

    def see_segment_starts(self, _: Any) -> list[int]:
        """The log end and where segments begin that hold a record of the log, the newest first.

        What Kafka's first protocol answered when asked for the offsets before the log end.
        """
        offsets = self._log().offsets()[0]
        hot, log_start = self._hot(), offsets.log_start
        segments = [one for one in hot.segments if _holds_records(one, hot)]
        ends = [*segments, *self._cold().files.segments(0)]
        starts = {max(one.base_offset, log_start) for one in ends if one.end_offset > log_start}
        return sorted(starts | {offsets.log_end}, reverse=True)

    def see_local_bases(self, _: Any) -> list[int]:
        hot = self._hot()
        return [segment.base_offset for segment in hot.segments if _holds_records(segment, hot)]

    def see_cold_bases(self, _: Any) -> list[int]:
        return [segment.base_offset for segment in self._cold().files.segments(0)]

    def see_log_start(self, _: Any) -> int:
        return int(self._log().offsets()[0].log_start)

    def see_local_log_start(self, _: Any) -> int:
        return int(self._log().offsets()[0].local_log_start)

    def see_archived_end(self, _: Any) -> int:
        return int(self._log().offsets()[0].archived_end)

    def see_log_end(self, _: Any) -> int:
        return int(self._log().offsets()[0].log_end)

    def see_find(self, wanted: Mapping[Any, Any]) -> dict[Any, Any]:
        """The offset of a position by name or timestamp; an error by its class; -1: none."""
        return {target: self._find(target) for target in wanted}

    def see_found(self, wanted: Mapping[int, Any]) -> dict[int, Any]:
        """As find, with the timestamp, as a consumer's ``offsets_for_times`` has it."""
        consumer = self._lakelog.consumer()
        consumer.assign([self._tp])
        if not wanted:
            return dict(consumer.offsets_for_times({}))
        found = {
            time_ms: consumer.offsets_for_times({self._tp: time_ms})[self._tp] for time_ms in wanted
        }
        return {time_ms: None if one is None else list(one) for time_ms, one in found.items()}

    def see_first(self, wanted: Mapping[int, Any]) -> dict[int, Any]:
        """The first record read from an offset; None at the log end; an error by its class."""
        return {offset: self._first(offset) for offset in wanted}

    def see_first_of_one_byte(self, wanted: Mapping[int, Any]) -> dict[int, Any]:
        return {offset: self._first(offset, max_bytes=1) for offset in wanted}

    def see_each_of_one_byte(self, wanted: Any) -> Any:
        """Offsets at which a read of one byte gives the record that is there."""
        offsets = [record.offset for record in self._records()]
        return _ranged(wanted, [one for one in offsets if self._first(one, max_bytes=1) == one])

    def see_holes_read_over(self, _: Any) -> int:
        """Holes in which a read gives the next record: at its first, middle and last offset."""
        return len(self._holes_read_over())

    def see_holes_read_over_by_one_byte(self, _: Any) -> int:
        return len(self._holes_read_over(max_bytes=1))

    def see_offsets(self, wanted: Any) -> Any:
        return _ranged(wanted, [record.offset for record in self._records()])

    def see_as_sent(self, wanted: Any) -> Any:
        """Offsets of what was read with the time, the key, the value and the headers as sent."""
        return _ranged(
            wanted,
            [
                one.offset
                for one in self._records()
                if (one.timestamp_ms, one.key, one.value, [*one.headers])
                == self._sent.get(one.offset)
            ],
        )

    def see_keys(self, _: Any) -> list[Any]:
        return [_readable(record.key) for record in self._records()]

    def see_values(self, _: Any) -> list[Any]:
        return [_readable(record.value) for record in self._records()]

    def see_times(self, _: Any) -> list[int]:
        return [record.timestamp_ms for record in self._records()]

    def see_headers(self, _: Any) -> list[list[Any]]:
        (record,) = self._records()
        return [[name, _readable(value)] for name, value in record.headers]

    def see_last_header(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        (record,) = self._records()
        return {name: _readable(record.header(name)) for name in wanted}

    def see_time_index(self, wanted: Any) -> Any:
        """The index's entries as [timestamp, offset], or how many there are."""
        times = Keys(self._lakelog.hot.keyspace).partition(self._tp).all()[3]
        server = self._lakelog.hot._servers.for_key(times)
        (answer,) = server.call(("ZRANGE", times, 0, -1, "WITHSCORES"))
        flat = [part for one in answer for part in (one if isinstance(one, list) else [one])]
        entries = [
            [int(float(score)), int(offset)]
            for offset, score in zip(flat[::2], flat[1::2], strict=True)
        ]
        return entries if isinstance(wanted, list) else len(entries)

    def see_config(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Settings by name, as they count: ``local.retention.ms`` with what −2 stands for."""
        config: TopicConfig = self._answer
        effective = {
            "local.retention.ms": config.local_retention_ms,
            "local.retention.bytes": config.local_retention_bytes,
        }
        return {name: effective.get(name, config[name]) for name in wanted}

    def see_compacted(self, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        """The report's numbers; None if nothing was cleaned."""
        if not self._answer.compacted:
            return None
        (done,) = self._answer.compacted
        return {name: getattr(done, name) for name in wanted or ()}

    def see_cleanable(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What compaction would look at: offsets, base offsets of segments, eligibility."""
        cold = self._cold()
        found = cleanable(self._there(), cold, 0, self._clock.now_ms())
        sizes = {one.base_offset: one.size_bytes for one in cold.files.segments(0)}
        clean = [segment.base_offset for segment in found.clean]
        dirty = [segment.base_offset for segment in found.dirty]
        both = sum(sizes[base] for base in clean + dirty) or 1
        seen = {
            "first_dirty": found.first_dirty,
            "first_uncleanable": found.first_uncleanable,
            "clean": clean,
            "dirty": dirty,
            "eligible": found.eligible,
            "ratio_is_dirty_of_both": found.dirty_ratio
            == sum(sizes[base] for base in dirty) / both,
        }
        return {name: seen[name] for name in wanted}

    def see_full_maps(self, _: Any) -> int:
        """How often the compaction's map of keys was full."""
        return self._full_maps

    def see_vacuumed(self, _: Any) -> int:
        """How many files of nobody went."""
        return int(self._answer.orphans_removed)

    def see_cleaned_end(self, _: Any) -> int:
        return self._cold().cleaned_end(0)

    def see_table_rows(self, _: Any) -> int:
        return sum(file.records for file in self._cold().files)

    # -- how -------------------------------------------------------------------------------------

    def _there(self) -> Topic:
        if self._topic is None:  # cases that are about other topics have none of their own
            self._create(self._case.topic)
        assert self._topic is not None
        return self._topic

    @property
    def _tp(self) -> TopicPartition:
        return self._there().partition(0)

    def _create(self, settings: Mapping[str, Any]) -> None:
        config = {"remote.storage.enable": self._layout != "untiered", "retention.ms": -1}
        self._measure()
        for name, value in settings.items():
            config[name] = self._size(value)
        self._topic = self._lakelog.topics.create(next(self._names), 1, config)
        self._sequences.clear()
        self._sent.clear()

    def _size(self, value: Any) -> Any:
        found = re.fullmatch(r"(\d+) (records?|segments?)", str(value))
        if not found:
            return _duration_ms(value) if _is_duration(value) else value
        count = int(found[1]) * self._record_bytes
        if found[2].startswith("record"):
            return count
        if self._layout == "untiered":
            per_segment = self._size(self._case.topic["internal.segment.bytes"])
            return int(found[1]) * per_segment
        self._retention = value
        newest = self._cold().files.segments(0)[-int(found[1]) :] if self._topic else ()
        return sum(segment.size_bytes for segment in newest) or -1

    def _measure(self) -> None:
        for step in self._case.steps:
            what = step.get("append", step.get("batch"))
            if what is not None:
                rows = self._rows({"records": what} if isinstance(what, int) else what)
                entries = _entries(rows, EntryFormat(_entry_format(what)))
                sizes = [entry.size_bytes for entry in entries]
                self._record_bytes = max(sizes, default=0)
                return

    def _rows(self, what: Mapping[str, Any]) -> list[Any]:
        lists = [what[name] for name in ("times", "keys", "values") if name in what]
        count = what.get("records", max(map(len, lists), default=1))
        first, step = self._time_ms(what.get("time", "now")), _duration_ms(what.get("every", 0))
        times = what.get("times", [first + i * step for i in range(count)])
        keys = what.get("keys", [what.get("key")] * count)
        if "key_bytes" in what:  # filled up to so many
            keys = [str(key).ljust(what["key_bytes"], ".") for key in keys]
        values = what.get("values")
        if values is None:
            size = what.get("bytes", 6)
            values = [f"{next(self._values):0{size}}" for _ in range(count)]
        headers = [(name, _bytes(value)) for name, value in what.get("headers", ())]
        return [
            (self._time_ms(time), _bytes(key), _bytes(value), headers)
            for time, key, value in zip(times, keys, values, strict=True)
        ]

    def _send(
        self,
        rows: Sequence[Any],
        producer: int,
        epoch: int = 0,
        sequence: int | None = None,
        entry_format: EntryFormat = EntryFormat.FIELDS,
    ) -> Any:
        first = self._sequences.get(producer, 0) if sequence is None else sequence
        last = (first + len(rows) - 1) % 2**31
        batch = ProducedBatch(_entries(rows, entry_format), producer, epoch, first, last)
        topic = self._there()
        self._answer = self._lakelog.hot.append(self._tp, topic.topic_id, batch)
        self._sequences[producer] = (last + 1) % 2**31
        if not self._answer.duplicate:
            self._sent.update(enumerate(rows, self._answer.base_offset))
        return self._answer

    def _cleanup(self, step: str) -> CleanupReport:
        (report,) = self._lakelog.cleanup(self._there().name, steps=(step,))
        return report

    def _move(self, register: Register, value: int) -> None:
        table = self._table()
        snapshot = table.snapshot()
        assert not table.apply(Change(registers={register: value}), snapshot).superseded

    def _table(self) -> Any:
        return self._lakelog._table(self._there())

    def _cold(self) -> ColdSnapshot:
        return self._table().snapshot() if self._there().config.tiered else ColdSnapshot()

    def _hot(self) -> HotOffsets:
        return self._lakelog.hot.offsets([self._tp])[self._tp]

    def _log(self) -> Any:
        return self._lakelog.log(self._there())

    def _records(self) -> list[Record]:
        return [record for batch in self._log().read(0) for record in to_records(self._tp, batch)]

    def _first(self, offset: int, **options: Any) -> Any:
        try:
            step = self._log().fetch(0, offset, **options)
        except errors.LakelogError as error:
            return type(error).__name__
        found = step.records.column("offset").to_pylist()
        assert not options or len(found) <= 1  # a byte's worth of records is one record
        return found[0] if found else None

    def _holes_read_over(self, **options: Any) -> list[tuple[int, int]]:
        offsets = [record.offset for record in self._records()]
        holes = [(one + 1, two) for one, two in pairwise(offsets) if two > one + 1]
        return [
            (start, end)
            for start, end in holes
            if all(
                self._first(probe, **options) == offsets[bisect_left(offsets, probe)]
                for probe in (start, (start + end) // 2, end - 1)
            )
        ]

    def _find(self, target: Any) -> Any:
        try:
            at = target if target in NAMED_POSITIONS else AtTimestamp(self._time_ms(target))
            found = self._log().seek(0, at)
        except errors.LakelogError as error:
            return type(error).__name__
        return -1 if found is None else found

    def _time_ms(self, time: Any) -> int:
        if isinstance(time, int):
            return time
        if time == "none":
            return -1
        assert time.startswith("now"), time
        return self._clock.now_ms() + _duration_ms(time[3:] or "0ms")


def _entries(rows: Sequence[Any], entry_format: EntryFormat) -> tuple[Entry, ...]:
    return encode(produced_batch(rows), entry_format, Compression.NONE)


def _entry_format(what: Any) -> str:
    return what.get("entry", "fields") if isinstance(what, Mapping) else "fields"


def _ranged(wanted: Any, found: list[int]) -> Any:
    """The offsets, as ``5..9`` where they are asked for so."""
    if not isinstance(wanted, str):
        return found
    first, last = map(int, wanted.split(".."))
    return wanted if found == list(range(first, last + 1)) else found


def _holds_records(segment: HotSegment, hot: HotOffsets) -> bool:
    return segment.end_offset > max(segment.base_offset, hot.local_log_start)


_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TERM = re.compile(r"([+-]?\d+)(ms|s|m|h|d)")


def _is_duration(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(f"(?:{_TERM.pattern})+", value) is not None


def _duration_ms(value: Any) -> int:
    """``1h+1ms``, ``-24h-5m``; a number is milliseconds."""
    if isinstance(value, int):
        return value
    assert _is_duration(value), value
    return sum(int(count) * _UNITS_MS[unit] for count, unit in _TERM.findall(value))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else value if isinstance(value, bytes) else str(value).encode()


def _readable(value: bytes | None) -> Any:
    """As the table writes it: a number, a text, or bytes that are neither."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value
    return int(text) if re.fullmatch(r"0|[1-9]\d*", text) else text

"""The log that a case runs on: its topic, what was sent to it, the words for sizes and times."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from case import Case
from offsets_tool import OffsetsTool

from lakelog import Lakelog
from lakelog.base.clock import ManualClock
from lakelog.codec import Entry, ProducedBatch, encode
from lakelog.cold.table import ColdSnapshot
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.offsets import HotSegments
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition


class CaseLog:
    """A topic in a Redis and a Delta table of the case's own."""

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
            return duration_ms(value) if _is_duration(value) else value
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
        first, step = self._time_ms(what.get("time", "now")), duration_ms(what.get("every", 0))
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

    def _table(self) -> Any:
        return self._lakelog._table(self._there())

    def _cold(self) -> ColdSnapshot:
        return self._table().snapshot() if self._there().config.tiered else ColdSnapshot()

    def _hot(self) -> HotSegments:
        return self._lakelog.hot.segments([self._tp])[self._tp]

    def _log(self) -> Any:
        return self._lakelog.log(self._there())

    def _time_ms(self, time: Any) -> int:
        if isinstance(time, int):
            return time
        if time == "none":
            return -1
        assert time.startswith("now"), time
        return self._clock.now_ms() + duration_ms(time[3:] or "0ms")


def _entries(rows: Sequence[Any], entry_format: EntryFormat) -> tuple[Entry, ...]:
    return encode(produced_batch(rows), entry_format, Compression.NONE)


def _entry_format(what: Any) -> str:
    return what.get("entry", "fields") if isinstance(what, Mapping) else "fields"


_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TERM = re.compile(r"([+-]?\d+)(ms|s|m|h|d)")


def _is_duration(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(f"(?:{_TERM.pattern})+", value) is not None


def duration_ms(value: Any) -> int:
    """``1h+1ms``, ``-24h-5m``; a number is milliseconds."""
    if isinstance(value, int):
        return value
    assert _is_duration(value), value
    return sum(int(count) * _UNITS_MS[unit] for count, unit in _TERM.findall(value))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else value if isinstance(value, bytes) else str(value).encode()

"""What can be expected of a log: `see_…` of the word that stands under ``expect`` in a step."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from case_log import CaseLog

from lakelog import errors
from lakelog.cleanup.plan import cleanable
from lakelog.hot.keys import Keys
from lakelog.values.config import TopicConfig
from lakelog.values.offsets import NAMED_POSITIONS, AtTimestamp, HotOffsets, HotSegment
from lakelog.values.record import Record, to_records


class Sights(CaseLog):
    """Each takes what is wanted, to see no more than that."""

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

    def see_cleaned_end(self, _: Any) -> int:
        return self._cold().cleaned_end(0)

    def see_table_rows(self, _: Any) -> int:
        return sum(file.records for file in self._cold().files)

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


def _ranged(wanted: Any, found: list[int]) -> Any:
    """The offsets, as ``5..9`` where they are asked for so."""
    if not isinstance(wanted, str):
        return found
    first, last = map(int, wanted.split(".."))
    return wanted if found == list(range(first, last + 1)) else found


def _holds_records(segment: HotSegment, hot: HotOffsets) -> bool:
    return segment.end_offset > max(segment.base_offset, hot.local_log_start)


def _readable(value: bytes | None) -> Any:
    """As the table writes it: a number, a text, or bytes that are neither."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value
    return int(text) if re.fullmatch(r"0|[1-9]\d*", text) else text

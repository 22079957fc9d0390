"""Named ways to break lakelog, one at a time, to prove that the machine notices.

A mutant patches the running process; no production module knows of it. One whose place in the code
is gone fails loudly instead of testing nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from lakelog.archive import archiver
from lakelog.archive.copy import HotRows
from lakelog.base.failpoints import failpoint
from lakelog.cleanup import (
    cleanup,
    compaction,
    erasure,
    erasure_plan,
    plan,
    retention,
    superseded,
)
from lakelog.cli import offsets as partition_filter
from lakelog.codec import arrow_entry, codec, crc, fields_entry
from lakelog.cold import committing, planned, reserve, rows
from lakelog.cold.by_path import path_table, purging, segment_writer
from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.parquet import segment_reader
from lakelog.cold.registers import ReservedEnd
from lakelog.cold.segment import Segment, SegmentFile
from lakelog.cold.table import Applied, ColdSnapshot, ColdTable
from lakelog.errors import ContradictionError, DecryptionError, TopicPurgedError
from lakelog.hot import scripts
from lakelog.read import seek
from lakelog.read.tiers import Values
from lakelog.spark import dataframe
from lakelog.testing.model import Difference
from lakelog.values import topic as topic_module
from lakelog.values.config import TopicConfig
from lakelog.values.offsets import HotSegments, LatestTiered, Position
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import OffsetRange


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect."""

    name: str
    breaks: str  # the promise it breaks
    applied: Callable[[], AbstractContextManager[Any]]
    #: As what it comes to light: an answer that is not the model's, or lakelog's own refusal to go
    #: on, or whichever comes first. Any other failure has not caught it.
    shows: tuple[
        type[Difference | ContradictionError | DecryptionError | TopicPurgedError], ...
    ] = (Difference,)


def script(name: str, changes: Mapping[str, str]) -> Callable[[], AbstractContextManager[None]]:
    """The script as loaded into Redis, with some of its text changed."""
    original = scripts.script_text

    def changed_text(script: str, *run: Any) -> str:
        text = original(script, *run)
        if script == name:
            for old, new in changes.items():
                if old not in text:
                    raise LookupError(f"the mutant of {name}.lua finds no {old!r} there any more")
                text = text.replace(old, new)
        return text

    @contextmanager
    def applied() -> Iterator[None]:
        scripts.script_sha.cache_clear()
        try:
            with mock.patch.object(scripts, "script_text", changed_text):
                yield
        finally:
            scripts.script_sha.cache_clear()

    return applied


def _erasure_without_its_end(cold: ColdSnapshot, rewrites: Sequence[Rewrite]) -> Change:
    return replace(erasure_plan.erasure_change(cold, rewrites), registers={})


def patched(target: Any, attribute: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(target, attribute, new)


_NOTES_GAP = "(st[7] and st[7] .. ',' or '') .. int(log_end) .. '-' .. int(gap_end)"


def _reserve_nothing(table: ColdTable, at_least: Mapping[int, int]) -> dict[int, OffsetRange]:
    snapshot = table.snapshot()
    return {number: reserve._next(snapshot, number, end) for number, end in at_least.items()}


_copy = HotRows.__call__


def _copy_and_trim(self: HotRows, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    yield from _copy(self, hot_range)
    self.source.open().trim(hot_range.topic_partition, hot_range.end_offset)


def _trim_everything(topic: object, hot: Mapping[int, HotSegments], *_: object) -> dict[int, int]:
    return {number: seen.log_end for number, seen in hot.items()}


_archive_plan = archiver.plan


def _plan_from_the_old_end(topic: Topic, hot: Mapping[int, HotSegments], *more: Any) -> Change:
    return _archive_plan(topic, {n: replace(one, log_start=0) for n, one in hot.items()}, *more)


_encode_fields = fields_entry.encode_fields


def _encode_null_headers_as_empty(row: fields_entry.Row, flatten: bool) -> object:
    timestamp_ms, key, value, headers = row
    headers = [(name, data or b"") for name, data in headers]
    return _encode_fields((timestamp_ms, key, value, headers), flatten)


@contextmanager
def _crc_unchecked() -> Iterator[None]:
    with ExitStack() as stack:
        for module, name in ((arrow_entry, "crc32c"), (fields_entry, "crc32c_of_parts")):
            stack.enter_context(mock.patch.object(module, name, return_value=b"00000000"))
        yield


def _standing_by_registers(
    change: Change, planned_on: ColdSnapshot, current: ColdSnapshot
) -> frozenset[int]:
    moved = {
        register.partition
        for register in change.registers
        if current.registers.get(register, 0) != planned_on.registers.get(register, 0)
    }
    return change.partitions - moved


def _standing_whatever_was_recovered(
    change: Change, planned_on: ColdSnapshot, current: ColdSnapshot
) -> frozenset[int]:
    of_recoveries = {
        register: value
        for register, value in planned_on.registers.items()
        if isinstance(register, ReservedEnd)
    }
    others = {
        register: value
        for register, value in current.registers.items()
        if not isinstance(register, ReservedEnd)
    }
    as_if_none = replace(current, registers={**others, **of_recoveries})
    return planned.standing_partitions(change, planned_on, as_if_none)


def _standing_as(found: Callable[..., frozenset[int]]) -> Callable[[], AbstractContextManager[Any]]:
    """Both who plans the files and who commits them take these partitions as standing."""

    @contextmanager
    def applied() -> Iterator[None]:
        with (
            mock.patch.object(path_table, "standing_partitions", found),
            mock.patch.object(committing, "standing_partitions", found),
        ):
            yield

    return applied


_apply = path_table.PathTable.apply


def _apply_whatever_the_policy(
    self: path_table.PathTable, change: Change, planned_on: ColdSnapshot
) -> Applied:
    return _apply(self, replace(change, config_version=None), planned_on)


_plan_of = compaction._Plan.of


@contextmanager
def _horizon_from_the_record() -> Iterator[None]:
    def only_retention(config: TopicConfig, cleanable: Any, found: Any, now_ms: int) -> object:
        return _plan_of(config, cleanable, found, 0)

    def from_timestamp(batch: pa.RecordBatch, retention_ms: int) -> pa.RecordBatch:
        times_us = pc.add(batch.column("timestamp").cast(pa.int64()), retention_ms * 1000)
        return _with_horizons(batch, times_us, pc.is_null(batch.column("delete_horizon")))

    with (
        mock.patch.object(compaction._Plan, "of", only_retention),
        mock.patch.object(rows, "_set_horizon", from_timestamp),
    ):
        yield


def _renew_horizons(batch: pa.RecordBatch, horizon_ms: int) -> pa.RecordBatch:
    return _with_horizons(batch, pa.scalar(horizon_ms * 1000), pa.scalar(value=True))


def _with_horizons(batch: pa.RecordBatch, times_us: Any, where: Any) -> pa.RecordBatch:
    horizons = batch.column("delete_horizon")
    chosen = pc.and_(pc.is_null(batch.column("value")), where)
    new = pc.if_else(chosen, pc.cast(times_us, horizons.type), horizons)
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], new], schema=batch.schema)


_rewritten = segment_writer._rewritten


def _rewritten_without_horizons(rewrite: Rewrite, *more: Any) -> Iterator[pa.RecordBatch]:
    for batch in _rewritten(rewrite, *more):
        if rewrite.delete_horizon_ms is None:
            nothing = pa.nulls(batch.num_rows, batch.schema.field("delete_horizon").type)
            yield pa.RecordBatch.from_arrays([*batch.columns[:-1], nothing], schema=batch.schema)
        else:
            yield batch


_read_keys = superseded._read


def _read_hashes(reader: Any, file: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in _read_keys(reader, file, columns):
        if "key" in columns:
            at = batch.schema.names.index("key")
            keys = [key and bytes([int(crc.crc32c(key), 16) % 4]) for key in batch[at].to_pylist()]
            batch = batch.set_column(at, batch.schema.field(at), pa.array(keys, pa.binary()))
        yield batch


def _tombstones_go_at_once(
    reader: Any, file: SegmentFile, now_ms: int, gone: Any, keyless: int
) -> superseded.FileFindings:
    batches = list(reader.read([file], file.start_offset, file.end_offset, ["offset", "value"]))
    tombstones = [
        row["offset"] for batch in batches for row in batch.to_pylist() if row["value"] is None
    ]
    return superseded.FileFindings(
        OffsetSet.of(np.union1d(gone, np.array(tombstones, np.int64))), keyless
    )


_cleanable = plan.cleanable


def _cleanable_with_the_open(topic: Topic, cold: Any, *more: Any) -> plan.Cleanable:
    def segments(partition: int) -> list[Segment]:
        found = cold.files.segments(partition)
        return [*found, *found[-1:]]

    files = mock.Mock(wraps=cold.files, segments=segments)
    return _cleanable(topic, mock.Mock(wraps=cold, files=files), *more)


_compaction_change = compaction._change


def _change_without_cleaned_end(plans: Any) -> Change:
    change = _compaction_change(plans)
    return Change(change.adds, change.removes)


_expired = retention._expired
_limits = retention._limits
_plan_retention = retention.plan_retention


def _oldest_expired(segment: Segment, *more: int) -> bool:
    return _expired(replace(segment, max_timestamp_ms=segment.min_timestamp_ms), *more)


def _plan_without_asking(topic: Topic, cold: ColdSnapshot, now_ms: int, *_: object) -> object:
    empty = HotSegments(0, 0, -1, 0)
    hot = dict.fromkeys(range(topic.partitions), empty)
    return _plan_retention(topic, cold, now_ms, hot)


def _seen_then_listed(self: path_table.PathTable) -> tuple[Mapping[str, Any], ColdSnapshot]:
    snapshot = self.snapshot()
    failpoint("cold.after_list")
    return self.storage.files_below(self.path), snapshot


#: Those that only a pause brings to light: see the tests that hold somebody up.
PAUSE_MUTANTS = (
    Mutant(
        "files judged by a look that is older than they are",
        "nothing that somebody committed is ever deleted",
        patched(path_table.PathTable, "_listed_then_seen", _seen_then_listed),
    ),
    Mutant(
        "policies of when the topic was looked up",
        "what a policy forgets goes only while the topic has that policy",
        patched(path_table.PathTable, "apply", _apply_whatever_the_policy),
    ),
)

#: What every comparison of readers notices: the condition as it once was.
FRAME_MUTANT = Mutant(
    "offsets unsaid where the range's own files lie inside",
    "a frame has the rows of its range, whatever else lies in their segments",
    patched(dataframe, "_of_their_segments", lambda _, found: found),
)

#: Those that `LogRules` alone notice.
MUTANTS = (
    Mutant(
        "trim before commit",
        "copy, commit, then trim: a crash between them loses nothing",
        patched(HotRows, "__call__", _copy_and_trim),
        shows=(Difference, ContradictionError),
    ),
    Mutant(
        "no sequence check",
        "a record appended once, also through a resend, is in the log once",
        script(
            "append",
            {
                "    if same then": "    if false then",
                "first_sequence ~= expected": "false",
            },
        ),
    ),
    Mutant(
        "no register check",
        "two archivers at once never duplicate a record",
        _standing_as(lambda change, *_: change.partitions),
        shows=(ContradictionError,),
    ),
    Mutant(
        "base id off by one",
        "offsets are dense at append",
        script(
            "append", {"local last = p.log_end + e.count - 1": "local last = p.log_end + e.count"}
        ),
    ),
    Mutant(
        "time index floor off by one",
        "a search by timestamp finds the earliest offset",
        script("find_timestamp", {"tonumber(floor) + 1": "tonumber(floor) + 2"}),
    ),
    Mutant(
        "a gap of a fixed width",
        "no offset names two records, also when the tail was lost and then the recovery",
        script(
            "recover",
            {"start or end_by_clock()": "math.max(log_end, known_end) + GAP_SPAN"},
        ),
    ),
    Mutant(
        "a gap as wide as the clock says",
        "no offset names two records, whatever the clock does",
        script("recover", {"start or end_by_clock()": "end_by_clock()"}),
    ),
    Mutant(
        "offsets given out before they are reserved",
        "cold knows of an offset before Redis gives it out",
        patched(reserve, "reserve", _reserve_nothing),
    ),
    Mutant(
        "appends beyond what is reserved",
        "cold knows of an offset before Redis gives it out",
        script("append", {"if settings.tiered and st[16]": "if false and st[16]"}),
    ),
    Mutant(
        "gap not noted",
        "a hole is declared, or it is an error",
        script("recover", {_NOTES_GAP: "st[7] or ''"}),
        shows=(Difference, ContradictionError),
    ),
    Mutant(
        "copied before a recovery, committed after it",
        "what a recovery declares lost stays lost",
        _standing_as(_standing_whatever_was_recovered),
    ),
    Mutant(
        "clean mark not removed",
        "only a server that lost nothing goes on without a gap",
        script(
            "pause",
            {
                "redis.call('HDEL', state, 'clean')": "local kept = true",
                "if st[2] ~= RUN_ID or st[3] then": "if st[2] ~= RUN_ID then",
            },
        ),
    ),
    Mutant(
        "null header value lost",
        "headers come back byte for byte, null is not empty",
        patched(codec, "encode_fields", _encode_null_headers_as_empty),
    ),
    Mutant("CRC unchecked", "damaged bytes are an error, never records", _crc_unchecked),
    Mutant(
        "no fencing",
        "an older epoch of a producer writes no more",
        script("append", {"elseif epoch < known_epoch then": "elseif false then"}),
    ),
    Mutant(
        "resent as new after a change of server",
        "unknown is not failed: what may have been written is not sent as new",
        script("append", {"if sent_under ~= '' and sent_under ~= RUN_ID": "if false"}),
    ),
    Mutant(
        "a lost partition goes on where its table ends",
        "after a total loss no offset that was given out is given to another record",
        script("init", {"local is_new = string.find": "local is_new = true or string.find"}),
    ),
    Mutant(
        "resent as new after a total loss",
        "unknown is not failed, also when Redis forgot everything in the same run",
        script("append", {"(sent_under == st[17] or": "(false or"}),
    ),
    Mutant(
        "a deleted topic freed at once",
        "what was deleted is kept in both tiers, and comes back whole",
        script("delete", {"if ARGV[2] == '0' then": "if true then"}),
        shows=(Difference, TopicPurgedError),
    ),
    Mutant(
        "a purge that leaves the files",
        "a purge removes all of a deleted topic",
        patched(purging, "_files", lambda *_: {}),
    ),
    Mutant(
        "an untiered log that starts in its table",
        "a topic that is archived no more starts at its local log start",
        script("init", {"if was_tiered and not is_tiered then": "if false then"}),
    ),
    Mutant(
        "tiered again below where it starts",
        "what a topic forgot while it was untiered does not come back",
        patched(archiver, "plan", _plan_from_the_old_end),
        shows=(Difference, ContradictionError),
    ),
    Mutant(
        "trim ignores what is archived",
        "nothing unarchived is dropped",
        patched(archiver, "trim_points", _trim_everything),
    ),
    Mutant(
        "keyless records taken",
        "a compacted topic refuses a record without a key",
        script("append", {"if settings.keys_required and e.keyless >= 0 then": "if false then"}),
    ),
    FRAME_MUTANT,
)


#: Those that `EraseRules` alone notice.
ERASE_MUTANTS = (
    Mutant(
        "an erasure that notes no end",
        "gaps that an erasure left are told from rows that somebody deleted",
        patched(erasure, "erasure_change", _erasure_without_its_end),
        shows=(Difference, ContradictionError),
    ),
)

#: Those that `QuotaRules` alone notice.
QUOTA_MUTANTS = (
    Mutant(
        "an allowance that nobody looks at",
        "what topics hold in Redis never exceeds their quota",
        script("append", {"+ bytes > allowance.held": "< 0"}),
    ),
    Mutant(
        "what others were allowed counts for nothing",
        "what topics hold in Redis never exceeds their quota",
        script("quota", {"local most = limit - sum + held": "local most = limit"}),
    ),
)

#: Those that `KeyRules` alone notice.
KEY_MUTANTS = (
    Mutant(
        "a reader that looks for no newer keys",
        "who opened a topic before its key was rotated reads what came since",
        patched(Values, "_look_again", lambda _: False),
        shows=(Difference, DecryptionError),
    ),
    Mutant(
        "a table that is never told of keys",
        "who loses Redis has the keys of all that is archived",
        patched(path_table.PathTable, "mirror", lambda *_: None),
        shows=(Difference, DecryptionError),
    ),
)

#: Those that `CleanupRules` alone notice.
CLEANUP_MUTANTS = (
    Mutant(
        "optimize without compare-and-set",
        "what is committed replaces files that are still there",
        _standing_as(_standing_by_registers),
        shows=(Difference, ContradictionError),
    ),
    Mutant(
        "horizon from the record's time",
        "a tombstone's time begins when cleaning first keeps it, however old it is",
        _horizon_from_the_record,
    ),
    Mutant(
        "horizon set anew",
        "a tombstone's time begins when cleaning first keeps it, and only then",
        patched(rows, "_set_horizon", _renew_horizons),
    ),
    Mutant(
        "optimize forgets horizons",
        "optimize changes no row",
        patched(segment_writer, "_rewritten", _rewritten_without_horizons),
    ),
    Mutant(
        "tombstones go at once",
        "a tombstone is kept for delete.retention.ms after its first cleaning",
        patched(superseded, "_with_tombstones", _tombstones_go_at_once),
    ),
    Mutant(
        "compaction that drops by hash",
        "keys are compared byte for byte",
        patched(superseded, "_read", _read_hashes),
    ),
    Mutant(
        "clean part left as it is",
        "of each key one record stays, wherever the older ones lie",
        patched(superseded, "_superseded_clean", lambda *_: superseded._NONE),
    ),
    Mutant(
        "open segment compacted",
        "compaction leaves the newest segment alone",
        patched(plan, "cleanable", _cleanable_with_the_open),
    ),
    Mutant(
        "young records compacted",
        "min.compaction.lag.ms keeps what is younger, and all after it",
        patched(plan, "_too_young", lambda *_: False),
    ),
    Mutant(
        "cleaned end not moved",
        "a register moves in the commit of the files that it speaks of",
        patched(compaction, "_change", _change_without_cleaned_end),
    ),
    Mutant(
        "retention not strict",
        "a record is kept while it is not older than retention.ms",
        patched(retention, "_expired", lambda one, ms, now_ms: _expired(one, ms - 1, now_ms)),
    ),
    Mutant(
        "age by the oldest record",
        "a segment is as old as its youngest record",
        patched(retention, "_expired", _oldest_expired),
    ),
    Mutant(
        "retention.bytes undershot",
        "what remains is at least as large as retention.bytes",
        patched(retention, "_limits", lambda config: (_limits(config)[0] // 2, _limits(config)[1])),
    ),
    Mutant(
        "retention.bytes of the files alone",
        "the size of a log is that of both tiers",
        patched(HotSegments, "bytes_from", lambda *_: 0),
    ),
    Mutant(
        "open segment expires unasked",
        "the newest segment goes only when hot has nothing that is not archived",
        patched(cleanup, "plan_retention", _plan_without_asking),
    ),
    Mutant(
        "a stranger's file taken as sorted",
        "readers trust statistics, never the order inside a file that somebody else wrote",
        patched(segment_reader, "is_ours", lambda _: True),
        shows=(ContradictionError,),
    ),
)

_cut = superseded.Search.cut
_offset_of = seek.offset_of


def _tiered_end(position: Position, *more: Any) -> int | None:
    found = _offset_of(position, *more)
    return found if found is None or not isinstance(position, LatestTiered) else found + 1


_rule = partition_filter._rule


def _rule_with_its_end(item: str) -> partition_filter.Rule:
    rule = _rule(item)
    assert isinstance(rule.partitions, range)
    wider = range(rule.partitions.start, rule.partitions.stop + (len(rule.partitions) > 1))
    return replace(rule, partitions=wider)


#: Those that Kafka's own test cases alone notice, beside many of the above.
CASE_MUTANTS = (
    Mutant(
        "four calls remembered",
        "a resend of any of a producer's last five calls is known",
        script("append", {"string.rep('|[^|]*', 4)": "string.rep('|[^|]*', 3)"}),
    ),
    Mutant(
        "six calls remembered",
        "of a producer the last five calls are known, and no more",
        script("append", {"string.rep('|[^|]*', 4)": "string.rep('|[^|]*', 5)"}),
    ),
    Mutant(
        "sequences without an end",
        "0 follows a producer's largest sequence",
        script("append", {"(newest + 1) % SEQUENCES": "newest + 1"}),
    ),
    Mutant(
        "producers remembered for ever",
        "an idle producer is forgotten after producer.id.expiration.ms",
        script("append", {"now - last_ms >= settings.producer_expiration_ms": "false"}),
    ),
    Mutant(
        "max.message.bytes of a record",
        "max.message.bytes bounds an entry with all its records",
        script(
            "append", {"e.bytes > settings.max_message": "e.bytes / e.count > settings.max_message"}
        ),
    ),
    Mutant(
        "segment.bytes of a record",
        "what is larger than a segment is refused",
        script(
            "append", {"e.bytes > settings.segment_b": "e.bytes / e.count > settings.segment_b"}
        ),
    ),
    Mutant(
        "segments that are too large",
        "a segment rolls before it would become larger than segment.bytes",
        script("append", {"settings.segment_bytes - e.bytes\n": "settings.segment_bytes\n"}),
    ),
    Mutant(
        "rolled by the clock",
        "segments of records with timestamps roll by those alone",
        script("append", {"s.first >= 0 and max - s.first or now": "now"}),
    ),
    Mutant(
        "age looked at in every append",
        "what is too old when it comes is readable until the next check of retention",
        script("append", {"retained(false)": "retained(true)"}),
    ),
    Mutant(
        "a range of keys not searched",
        "a map of keys that is full makes compaction slower, and nothing else",
        patched(superseded.Search, "cut", lambda self, bounds: _cut(self, bounds)[:-1]),
    ),
    Mutant(
        "latest tiered exclusive",
        "latest-tiered is the last offset of the cold tier, and not the next",
        patched(seek, "offset_of", _tiered_end),
    ),
    Mutant(
        "a range with its end",
        "orders:0-3 are the partitions 0, 1 and 2",
        patched(partition_filter, "_rule", _rule_with_its_end),
    ),
    Mutant(
        "patterns that may end early",
        "a pattern is of the whole name",
        patched(
            partition_filter.Rule,
            "allows_topic",
            lambda self, topic: self.topic.match(topic) is not None,
        ),
    ),
    Mutant(
        "internal topics never left out",
        "--exclude-internal-topics leaves out Kafka's own",
        patched(topic_module, "INTERNAL_TOPICS", frozenset()),
    ),
)

"""The oracle itself, on cases small enough to check by eye."""

from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

from lakelog.errors import (
    InvalidRecordError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecoveryNeededError,
    UnknownProducerError,
)
from lakelog.testing.model import Answer, Difference, ModelLog
from lakelog.values.record import RECORDS, Fetched, OffsetAndTimestamp
from lakelog.values.topic_partition import OffsetRange, TopicPartition

GAP_END = 1 << 24


def to_fetch(model: ModelLog) -> pa.RecordBatch:
    """What a reader gets of all records."""
    offsets, times = zip(*((r.offset, r.timestamp_ms * 1000) for r in model.read()), strict=True)
    rows = [
        {"offset": offset, "timestamp": at, "timestampType": 0, "value": b"value", "headers": []}
        for offset, at in zip(offsets, times, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, RECORDS)


def row(timestamp_ms: int = -1):
    return (timestamp_ms, None, b"value", ())


def model_of(*timestamps_ms: int) -> ModelLog:
    model = ModelLog(TopicPartition("orders", 0), "first run")
    append(model, [row(timestamp_ms) for timestamp_ms in timestamps_ms])
    return model


def append(model: ModelLog, rows, *, producer=1, epoch=0, sequence=0, run="first run", under=None):
    return model.append(rows, producer, epoch, sequence, run_id=run, now_ms=9, sent_under=under)


def test_a_resent_call_gets_its_first_answer_while_it_is_remembered():
    model = model_of(1, 2)
    assert append(model, [row(), row()]) == Answer(0, -1, duplicate=True)
    for sequence in range(2, 7):
        assert append(model, [row()], sequence=sequence) == Answer(sequence, -1)
    assert append(model, [row(), row()]) is OutOfOrderSequenceError


def test_producers_are_fenced_by_epoch_and_strangers_refused():
    model = model_of(1)
    assert append(model, [row()], epoch=1) == Answer(1, -1)
    assert append(model, [row()], sequence=1) is ProducerFencedError
    assert append(model, [row()], producer=2, sequence=4) is UnknownProducerError


def test_a_gap_that_redis_has_forgotten_is_not_reported():
    model = model_of(5)
    model.lose_tail(1)
    model.recover("second run", GAP_END)
    append(model, [row(6)], run="second run", under=None)
    model.archive(GAP_END + 1)
    seen = Fetched(to_fetch(model), 0, GAP_END + 1, (OffsetRange(1, GAP_END),))
    model.check_fetched(seen, 0)
    with pytest.raises(Difference, match="reports lost"):
        model.check_fetched(replace(seen, gaps=()), 0)

    model.lose_tail(1)
    model.check_fetched(replace(seen, gaps=()), 0)
    with pytest.raises(Difference, match="reports lost"):
        model.check_fetched(seen, 0)


def test_a_lost_tail_leaves_a_gap_that_no_archived_record_falls_into():
    model = model_of(5, 6, 7)
    append(model, [row(8)], sequence=3)
    model.archive(2)
    append(model, [row(9)], sequence=4)
    model.lose_tail(0)

    assert [record.offset for record in model.read()] == [0, 1]
    assert append(model, [row()], run="second run") is RecoveryNeededError
    with pytest.raises(Difference, match="offsets up to 5 have been handed out"):
        model.recover("second run", 4)
    model.recover("second run", GAP_END)
    assert append(model, [row()], run="second run", under="first run") is UnknownProducerError
    assert append(model, [row(3)], run="second run") == Answer(GAP_END, -1)
    assert model.lost(0, model.log_end) == [OffsetRange(2, GAP_END)]


def test_appends_stop_where_no_more_offsets_are_reserved():
    model = model_of(1, 2)
    model.reserved_end = 3
    assert append(model, [row(), row()], sequence=2) is RecoveryNeededError
    assert append(model, [row()], sequence=2) == Answer(2, -1)
    with pytest.raises(Difference, match="below 3"):
        model.skip_to(2)
    model.skip_to(8)
    model.reserved_end = 10
    assert append(model, [row()], sequence=3) == Answer(8, -1)
    assert model.lost(0, model.log_end) == [OffsetRange(3, 8)]


def test_a_clean_stop_keeps_producers_and_leaves_no_gap():
    model = model_of(1)
    model.pause()
    model.recover("second run", 1)
    assert append(model, [row()], run="second run", under="first run") == Answer(0, -1, True)
    assert append(model, [row()], run="second run", sequence=1) == Answer(1, -1)


def test_searches_by_timestamp_take_the_earliest_offset():
    model = model_of(5, -1, 9, 9, 6)
    assert model.offset_for_timestamp(6) == OffsetAndTimestamp(2, 9)
    assert model.offset_for_timestamp(10) is None
    assert model.max_timestamp() == OffsetAndTimestamp(2, 9)
    model.raise_log_start(4)
    assert model.max_timestamp() == OffsetAndTimestamp(4, 6)
    assert model_of(-1).max_timestamp() is None


def test_rows_are_wrong_when_missing_doubled_or_of_nobody():
    model = model_of(1, 2, 3)
    model.archive(3)
    rows = model.read()
    model.check_rows(rows)
    for wrong in (rows[1:], [*rows, rows[0]], [*rows[:2], model_of(1, 2, 4).read()[2]]):
        with pytest.raises(Difference):
            model.check_rows(wrong)
    model.raise_log_start(2)
    model.check_rows(rows[1:])  # a deleted record may be gone, but not be there twice
    with pytest.raises(Difference):
        model.check_rows([rows[0], *rows])


def test_what_compaction_removed_is_read_while_it_is_hot():
    model = ModelLog(TopicPartition("orders", 0), "first run")
    append(
        model, [(-1, key, value, ()) for key, value in [(b"a", b"1"), (b"a", b"2"), (b"b", None)]]
    )
    model.archive(3)
    assert model.compact(0, 3, now_ms=9, delete_retention_ms=5) == {0}
    assert [record.offset for record in model.cold()] == [1, 2]
    assert [record.offset for record in model.read()] == [0, 1, 2]
    model.local_log_start = 1
    assert [record.offset for record in model.read()] == [1, 2]
    assert model.lost(0, 3) == []

    model.check_rows(model.cold(), {2: 14})
    for horizons_ms in ({}, {2: 15}):
        with pytest.raises(Difference, match="tombstones should go at"):
            model.check_rows(model.cold(), horizons_ms)


def test_a_compacted_topic_takes_no_record_without_a_key():
    model = ModelLog(TopicPartition("orders", 0), "first run", keys_required=True)
    assert append(model, [(-1, b"a", None, ()), row()]) is InvalidRecordError
    assert model.records == []


def test_archiving_ends_one_past_a_record():
    model = model_of(1, 2, 3)
    assert model.archivable_end() == 3
    assert model.archivable_end(before=2) == 2
    with pytest.raises(Difference, match="is not one past a record"):
        model.archive(5)

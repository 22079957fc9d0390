"""Appending: idempotence, fencing, what is refused, and that a refusal leaves no trace."""

from __future__ import annotations

import random
from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from lakelog.codec import Entry, ProducedBatch
from lakelog.errors import (
    ForeignEntryError,
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    OffsetsExhaustedError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordTooLargeError,
    RepeatDiffersError,
    UnknownProducerError,
)
from lakelog.hot import Acks, AppendResult
from lakelog.values.config import DAY_MS, HOUR_MS, EntryFormat
from lakelog.values.record import TimestampType

NOW_MS = 1_700_000_000_000  # where the manual clock begins
TENTH_OF_2_TO_53 = 10**14  # where Lua's `..` turns to exponents


def again(answer: AppendResult) -> AppendResult:
    """What is answered to a repeat of a call that got this answer."""
    return changed(answer, duplicate=True)


def calls_of(make_batch, count, *, records=2, **more):
    """Successive calls of one producer."""
    return [
        make_batch([NOW_MS] * records, first_sequence=i * records, **more) for i in range(count)
    ]


def refusal(bench, batch, **more):
    """The error of an append that must change nothing."""
    before = bench.dump()
    with pytest.raises(LakelogError) as caught:
        bench.send(batch, **more)
    assert bench.dump() == before
    return caught.value


# -- offsets -----------------------------------------------------------------------------------


def test_offsets_are_dense_and_count_records_not_entries(bench, make_batch):
    first = bench.send(make_batch([NOW_MS] * 3, producer_id=1))
    second = bench.send(make_batch([NOW_MS] * 20, producer_id=2, entry_format=EntryFormat.ARROW))
    third = bench.send(make_batch([NOW_MS], producer_id=3))
    assert [r.base_offset for r in (first, second, third)] == [0, 3, 23]
    assert bench.offsets().log_end == 24
    assert bench.read_offsets() == list(range(24))


def test_a_call_of_several_entries_is_one_unit(bench, make_batch):
    batch = make_batch([NOW_MS] * 500, entry_format=EntryFormat.ARROW, max_entry_bytes=4096)
    assert len(batch.entries) > 2
    assert bench.send(batch).base_offset == 0
    assert bench.send(batch) == AppendResult(0, -1, 0, bench.send(batch).run_id, True)
    assert bench.offsets().log_end == 500


@pytest.mark.parametrize("base", [TENTH_OF_2_TO_53 - 2, 10**15 - 1, 2**53 - 10])
def test_large_offsets_are_written_out_in_full(bench, make_batch, base):
    bench.client.hset(bench.keys()[1], mapping={"log_end": base, "local_log_start": base,
        "segment": f"{base} 0 -1 -1 {NOW_MS} {NOW_MS}", "reserved_end": 2**53})  # fmt: skip
    bench.append(NOW_MS, NOW_MS, NOW_MS, value_bytes=5000)
    assert bench.offsets().log_end == base + 3
    assert bench.read_offsets(base) == [base, base + 1, base + 2]
    assert bench.bases() == [base]
    assert bench.client.zrange(bench.keys()[3], 0, -1) == [b"%d" % base]
    bench.hot.trim(bench.tp(), base + 2)
    assert bench.read_offsets(base + 2) == [base + 2]


def test_offsets_end_below_2_to_53(bench, make_batch):
    bench.client.hset(bench.keys()[1], "log_end", 2**53 - 2)
    error = refusal(bench, make_batch([NOW_MS] * 3))
    assert isinstance(error, OffsetsExhaustedError)
    assert error.log_end == 2**53 - 2
    assert bench.client.xlen(bench.keys()[0]) == 0


# -- idempotence -------------------------------------------------------------------------------


def test_a_duplicate_of_any_of_the_last_five_calls_gets_the_first_answer(bench, make_batch):
    calls = calls_of(make_batch, 7)
    answers = [bench.send(call) for call in calls]
    written = bench.client.xlen(bench.keys()[0])
    for call, answer in list(zip(calls, answers, strict=True))[2:]:
        assert bench.send(call) == again(answer)
    assert bench.client.xlen(bench.keys()[0]) == written


def test_a_duplicate_older_than_five_calls_is_out_of_order(bench, make_batch):
    calls = calls_of(make_batch, 7)
    for call in calls:
        bench.send(call)
    for call in calls[:2]:
        error = refusal(bench, call)
        assert isinstance(error, OutOfOrderSequenceError)
        assert error.expected == 14


@pytest.mark.parametrize(
    ("first_sequence", "records"),
    [(0, 1), (1, 1), (0, 3), (1, 3), (2, 1), (3, 2), (5, 1), (100, 4)],
)
def test_partial_duplicates_and_holes_are_out_of_order(bench, make_batch, first_sequence, records):
    for call in calls_of(make_batch, 2):  # sequences 0..3
        bench.send(call)
    batch = make_batch([NOW_MS] * records, first_sequence=first_sequence)
    error = refusal(bench, batch)
    assert isinstance(error, OutOfOrderSequenceError)
    assert (error.sequence, error.expected) == (first_sequence, 4)


def chained(calls, *, other_from=None):
    """The calls with checksums; from that call on, those of other records."""
    chain = [f"{n:08x}" for n in range(len(calls) + 1)]
    if other_from is not None:
        chain[other_from + 1 :] = [f"{n:08x}" for n in range(100, 100 + len(calls) - other_from)]
    return [replace(c, checksums=(chain[n], chain[n + 1])) for n, c in enumerate(calls)]


def test_a_repeat_with_the_same_checksums_goes_on_where_the_first_one_stopped(bench, make_batch):
    calls = chained(calls_of(make_batch, 8))
    for call in calls[:6]:
        bench.send(call)
    assert refusal(bench, calls[0]).expected == 12
    assert [bench.send(call).duplicate for call in calls[1:]] == [True] * 5 + [False] * 2
    assert bench.offsets().log_end == 16


@pytest.mark.parametrize("other_from", [0, 1, 2])
def test_a_repeat_of_other_records_neither_passes_for_the_first_nor_continues_it(
    bench, make_batch, other_from
):
    calls = calls_of(make_batch, 4)
    for call in chained(calls)[:3]:
        bench.send(call)
    others = chained(calls, other_from=other_from)
    for call in others[other_from:]:
        assert isinstance(refusal(bench, call), RepeatDiffersError)
    assert [bench.send(call).duplicate for call in others[:other_from]] == [True] * other_from


def test_checksums_begin_anew_with_an_epoch(bench, make_batch):
    for call in chained(calls_of(make_batch, 2)):
        bench.send(call)
    later = chained(calls_of(make_batch, 2, epoch=1), other_from=0)
    assert [bench.send(call).base_offset for call in later] == [4, 6]
    assert isinstance(refusal(bench, make_batch([NOW_MS], epoch=1, first_sequence=4)),
        RepeatDiffersError)  # fmt: skip


def test_calls_in_one_trip_are_appended_in_order(bench, make_batch):
    calls = calls_of(make_batch, 5)
    answers = bench.hot.append_all([bench.call(call) for call in calls])
    assert [answer.base_offset for answer in answers] == [0, 2, 4, 6, 8]


def test_a_refused_call_stops_no_other(bench, make_batch):
    good, late, other = make_batch([NOW_MS]), make_batch([NOW_MS], first_sequence=9), None
    other = make_batch([NOW_MS], producer_id=2)
    empty = Entry(0, [b"a", b"b"], 2, 2, -1, -1, None)
    odd = ProducedBatch((empty, *good.entries), 3, 0, 0, 0)
    answers = bench.hot.append_all([bench.call(b) for b in (good, late, odd, other)])
    assert [type(a) for a in answers] == [
        AppendResult,
        OutOfOrderSequenceError,
        InvalidArgumentError,
        AppendResult,
    ]
    assert answers[3].base_offset == 1


# -- epochs ------------------------------------------------------------------------------------


def test_a_new_epoch_starts_at_sequence_0(bench, make_batch):
    bench.send(make_batch([NOW_MS]))
    error = refusal(bench, make_batch([NOW_MS], epoch=1, first_sequence=1))
    assert isinstance(error, OutOfOrderSequenceError)
    assert error.expected == 0
    assert bench.send(make_batch([NOW_MS], epoch=1)).base_offset == 1


def test_a_lower_epoch_is_fenced_even_for_a_duplicate(bench, make_batch):
    old = make_batch([NOW_MS])
    bench.send(old)
    bench.send(make_batch([NOW_MS], epoch=3))
    for batch in (old, make_batch([NOW_MS], first_sequence=1), make_batch([NOW_MS], epoch=2)):
        error = refusal(bench, batch)
        assert isinstance(error, ProducerFencedError)
        assert error.current_epoch == 3


# -- producers Redis does not know -------------------------------------------------------------


@pytest.mark.parametrize("first_sequence", [1, 7, 2**31 - 1])
def test_an_unknown_producer_must_start_at_0(bench, make_batch, first_sequence):
    error = refusal(bench, make_batch([NOW_MS], first_sequence=first_sequence))
    assert isinstance(error, UnknownProducerError)


def test_a_resend_of_a_first_call_that_never_came_is_appended(bench, make_batch):
    run_id = bench.append(NOW_MS).run_id
    assert bench.send(make_batch([NOW_MS]), sent_under=run_id).base_offset == 1


def test_a_resend_under_another_run_is_never_appended(bench, make_batch):
    error = refusal(bench, make_batch([NOW_MS]), sent_under="f" * 40)
    assert isinstance(error, UnknownProducerError)


def test_after_somebody_deleted_producer_state_a_resend_is_unknown(bench, make_batch):
    batch = make_batch([NOW_MS])
    run_id = bench.send(batch).run_id
    bench.client.delete(bench.keys()[4])
    error = refusal(bench, batch, sent_under=run_id)
    assert isinstance(error, UnknownProducerError)
    # what continues it is unknown too, what is new is not
    assert isinstance(refusal(bench, make_batch([NOW_MS], first_sequence=1)), UnknownProducerError)
    assert bench.send(make_batch([NOW_MS], producer_id=9)).base_offset == 1


def test_an_idle_producer_expires(make_bench, make_batch):
    bench = make_bench(producer_id_expiration_ms=1000)
    bench.send(make_batch([NOW_MS], epoch=4))
    bench.clock.advance(999)
    bench.send(make_batch([NOW_MS], epoch=4, first_sequence=1))
    bench.clock.advance(1000)
    error = refusal(bench, make_batch([NOW_MS], epoch=4, first_sequence=2))
    assert isinstance(error, UnknownProducerError)
    # Kafka takes any sequence now; here a new start is asked for, under any epoch
    assert bench.send(make_batch([NOW_MS], epoch=0)).base_offset == 2


def test_a_resend_within_the_expiration_is_a_duplicate_whatever_others_do(make_bench, make_batch):
    bench = make_bench(producer_id_expiration_ms=1000)
    batch = make_batch([NOW_MS])
    answer = bench.send(batch)
    for _ in range(20):  # newcomers forget the expired ones
        bench.clock.advance(49)
        bench.append(NOW_MS)
    assert bench.send(batch, sent_under=answer.run_id) == again(answer)


def test_a_late_resend_is_still_compared_while_the_state_is_there(make_bench, make_batch):
    bench = make_bench(producer_id_expiration_ms=1000)
    batch = make_batch([NOW_MS])
    answer = bench.send(batch)
    bench.clock.advance(5000)
    assert bench.send(batch, sent_under=answer.run_id) == again(answer)


def test_expired_producers_are_forgotten_as_others_come(make_bench):
    bench = make_bench(producer_id_expiration_ms=1000)
    for _ in range(30):
        bench.append(NOW_MS)
    bench.clock.advance(1000)
    for _ in range(60):
        bench.append(NOW_MS)
    assert bench.client.hlen(bench.keys()[4]) < 65
    assert int(bench.state("producer_count")) == bench.client.hlen(bench.keys()[4])


# -- timestamps --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "offset_ms", "word"),
    [
        ("message_timestamp_before_max_ms", -(DAY_MS + 5 * 60_000), "before"),
        ("message_timestamp_after_max_ms", HOUR_MS + 5 * 60_000, "after"),
    ],
)
@pytest.mark.parametrize("entry_format", [EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA])
def test_timestamps_out_of_bounds_reject_the_whole_call(
    make_bench, make_batch, setting, offset_ms, word, entry_format
):
    bench = make_bench(**{setting: DAY_MS if word == "before" else HOUR_MS})
    bad = NOW_MS + offset_ms
    error = refusal(bench, make_batch([bad, bad, bad], entry_format=entry_format))
    assert isinstance(error, InvalidTimestampError)
    assert [(i, t) for i, t, _ in error.record_errors] == [(0, bad), (1, bad), (2, bad)]
    assert all(word in reason for _, _, reason in error.record_errors)
    assert f"message.timestamp.{word}.max.ms=" in str(error)


def test_timestamps_at_the_bounds_and_none_are_accepted(make_bench):
    bench = make_bench(message_timestamp_before_max_ms=DAY_MS)
    bench.append(NOW_MS - DAY_MS, -1, NOW_MS + HOUR_MS)
    assert [record.timestamp_ms for record in bench.read()] == [
        NOW_MS - DAY_MS,
        -1,
        NOW_MS + HOUR_MS,
    ]


@pytest.mark.parametrize("entry_format", [EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA])
def test_log_append_time_overrides_every_timestamp(make_bench, make_batch, entry_format):
    bench = make_bench(message_timestamp_type="LogAppendTime")
    batch = make_batch([5, -1, NOW_MS + 10 * DAY_MS], entry_format=entry_format)
    answer = bench.send(batch)
    assert answer.append_time_ms == NOW_MS
    bench.clock.advance(1234)
    assert bench.send(batch) == again(answer)  # the first append's time
    assert {(r.timestamp_ms, r.timestamp_type) for r in bench.read()} == {
        (NOW_MS, TimestampType.LOG_APPEND_TIME)
    }
    assert bench.offsets().max_timestamp_ms == NOW_MS


# -- what a topic refuses ----------------------------------------------------------------------


@pytest.mark.parametrize("entry_format", [EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA])
@pytest.mark.parametrize(
    ("keys", "index"),
    [((None, b"k", b"k"), 0), ((b"k", None, b"k"), 1), ((b"k", b"", None), 2)],
)
def test_a_keyless_record_on_a_compacted_topic(make_bench, make_batch, entry_format, keys, index):
    bench = make_bench(cleanup_policy="compact")
    error = refusal(bench, make_batch([NOW_MS] * 3, keys=keys, entry_format=entry_format))
    assert isinstance(error, InvalidRecordError)
    assert error.index == index
    assert bench.append(NOW_MS, key=b"").base_offset == 0  # an empty key is one


@pytest.mark.parametrize("entry_format", [EntryFormat.FIELDS, EntryFormat.KAFKA])
@pytest.mark.parametrize(
    ("keys", "times_ms", "kind"),
    [
        ((None, b"k"), (1, NOW_MS), InvalidRecordError),  # of one record its key counts,
        ((b"k", None), (NOW_MS, 1), InvalidRecordError),
        ((None, b"k"), (1, 1), InvalidTimestampError),  # of several their timestamps
        ((None, b"k"), (NOW_MS, 1), InvalidTimestampError),
        ((b"k", None), (1, NOW_MS), InvalidTimestampError),
    ],
)
def test_of_several_flaws_a_batch_is_refused_for_that_which_kafka_names(
    make_bench, make_batch, entry_format, keys, times_ms, kind
):
    """As ``LogValidator.processRecordErrors``: found by a random workload on a broker."""
    bench = make_bench(cleanup_policy="compact", message_timestamp_before_max_ms=1000)
    together = make_batch(times_ms, keys=keys, entry_format=entry_format)
    assert type(refusal(bench, together)) is kind
    apart = [make_batch([time], keys=[key]) for time, key in zip(times_ms, keys, strict=True)]
    entries = tuple(entry for one in apart for entry in one.entries)
    assert type(refusal(bench, ProducedBatch(entries, 1, 0, 0, 1))) is kind


def test_an_entry_above_max_message_bytes(make_bench, make_batch):
    bench = make_bench(max_message_bytes=2000)
    small, large = make_batch([NOW_MS]), make_batch([NOW_MS], value_bytes=2000)
    mixed = ProducedBatch((*small.entries, *large.entries), 1, 0, 0, 1)
    error = refusal(bench, mixed)
    assert isinstance(error, RecordTooLargeError)
    assert (error.index, error.limit_bytes) == (1, 2000)
    assert "max.message.bytes=2000" in str(error)


@pytest.mark.parametrize("declared", [1_001, 2**31])
def test_an_entry_that_is_too_large_once_decompressed(make_bench, make_batch, declared):
    bench = make_bench(lakelog_max_decoded_bytes=1000)
    batch = make_batch([NOW_MS])
    large = replace(batch.entries[0], decoded_bytes=declared)
    error = refusal(bench, replace(batch, entries=(large,)))
    assert isinstance(error, RecordTooLargeError)
    assert f"{declared} bytes" in str(error)
    assert "lakelog.max.decoded.bytes=1000" in str(error)
    allowed = replace(batch.entries[0], decoded_bytes=1000)
    assert bench.send(replace(batch, entries=(allowed,))).base_offset == 0


def test_settings_of_a_lakelog_that_knew_no_decoded_bytes_have_no_such_bound(bench, make_batch):
    state = next(key for key in bench.client.scan_iter() if key.endswith(b":state"))
    older = b" ".join(bench.client.hget(state, "settings").split()[:14])
    bench.client.hset(state, "settings", older)
    batch = make_batch([NOW_MS])
    large = replace(batch.entries[0], decoded_bytes=2**40)
    assert bench.send(replace(batch, entries=(large,))).base_offset == 0


def test_an_entry_above_segment_bytes(make_bench, make_batch):
    bench = make_bench(internal_segment_bytes=1000)
    error = refusal(bench, make_batch([NOW_MS], value_bytes=1000))
    assert isinstance(error, RecordTooLargeError)
    assert "segment.bytes=1000" in str(error)


def test_an_entry_of_as_many_fields_as_a_script_can_pass(make_bench):
    bench = make_bench(message_timestamp_type="LogAppendTime")
    fields = [b"x"] * 7990
    entry = Entry(1, fields, 7990, 7990, -1, -1, None)
    assert bench.send(ProducedBatch((entry,), 1, 0, 0, 0)).base_offset == 0
    for odd in ([b"x"] * 7992, [b"x"] * 3):
        error = refusal(bench, ProducedBatch((replace(entry, fields=odd),), 2, 0, 0, 0))
        assert isinstance(error, InvalidArgumentError)


@pytest.mark.parametrize("foreign", ["*", "5-0", "1700000000000-1"])
def test_a_higher_id_of_somebody_else_refuses_appends_and_names_itself_on_read(
    bench, make_batch, foreign, caplog
):
    bench.append(NOW_MS)
    bench.client.xadd(bench.keys()[0], {"by": "hand"}, id=foreign)
    assert isinstance(refusal(bench, make_batch([NOW_MS])), ForeignEntryError)
    assert bench.read_offsets() == [0]
    if foreign != "*":
        assert any(foreign in line for line in caplog.messages)


def test_random_refusals_never_leave_a_trace(make_bench, make_batch):
    """Several faults in one call, in any entry of it."""
    bench = make_bench(
        cleanup_policy="compact", max_message_bytes=1500, internal_segment_bytes=4000
    )
    rng = random.Random(7)
    for i in range(10):
        bench.append(NOW_MS + i, value_bytes=700)
    for _ in range(60):
        timestamps = [NOW_MS] * rng.randint(1, 5)
        keys: list[bytes | None] = [b"k"] * len(timestamps)
        faults = rng.sample(["time", "key", "size", "sequence", "epoch"], rng.randint(1, 3))
        at = rng.randrange(len(timestamps))
        if "time" in faults:
            timestamps[at] += DAY_MS
        if "key" in faults:
            keys[at] = None
        batch = make_batch(
            timestamps,
            keys=keys,
            producer_id=1000,
            epoch=0 if "epoch" not in faults else 1,
            first_sequence=1 if "sequence" not in faults and "epoch" not in faults else 17,
            value_bytes=1600 if "size" in faults else 10,
        )
        refusal(bench, batch)
    assert bench.append(NOW_MS).base_offset == 10


# -- acks --------------------------------------------------------------------------------------


def test_acks_are_read_from_text():
    assert [str(Acks.parse(text)) for text in ("memory", "replicas=2", "fsync")] == [
        "memory",
        "replicas=2",
        "fsync",
    ]
    for text in ("all", "replicas", "replicas=0", "replicas=-1", "1", ""):
        with pytest.raises(InvalidArgumentError, match="replicas=N"):
            Acks.parse(text)

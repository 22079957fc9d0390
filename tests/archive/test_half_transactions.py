"""A power cut anywhere in the file that appends go to: half a transaction harms no reader."""

from __future__ import annotations

import shutil

import pytest
from cuts import Cuts, values_of

from lakelog.codec import encode
from lakelog.hot.keys import Keys
from lakelog.read.topic_log import TopicLog
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch

pytestmark = pytest.mark.slow

APPENDS_PER_MS = 16384  # of common.lua
LARGEST_ID = f"{2**64 - 1}-{2**64 - 1}"


def older_append(tiers, client, count=0):
    """What an older lakelog left in the file of a large append, or of a refused one (of none).

    It closed the stream, and opened it again where its check had said yes.
    """
    keys = Keys(tiers.hot.keyspace).partition(tiers.topic.partition(0))
    end = tiers.hot.offsets([tiers.topic.partition(0)])[tiers.topic.partition(0)].log_end
    with client.pipeline(transaction=True) as transaction:
        transaction.execute_command("XSETID", keys.stream, LARGEST_ID)
        transaction.execute_command("XSETID", keys.stream, f"{end - 1}-{2**64 - 1}")
        if count:
            rows = produced_batch([(tiers.clock.now_ms(), None, b"older", ())] * count)
            transaction.hset(keys.state, "appending", "a run 1")
            for entry in encode(rows, EntryFormat.ARROW, Compression.NONE):
                end += entry.record_count
                fields = dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
                transaction.xadd(keys.stream, fields, id=f"{end - 1}-{entry.record_count}")
            transaction.hset(keys.state, "log_end", end)
            transaction.hdel(keys.state, "appending")
        transaction.execute()


@pytest.mark.parametrize("most", [8, pytest.param(None, marks=pytest.mark.slow)])
def test_a_file_cut_anywhere_loses_nothing_that_lies_before_and_reads_go_on(
    make_redis, make_tiers, redis_program, most
):
    server = make_redis(program=redis_program, appendfsync="always")
    tiers = make_tiers(
        partitions=2,
        url=server.url,
        local_retention_ms=-1,
        internal_segment_bytes=900,
        index_interval_bytes=1,
        lakelog_entry_format="arrow",
    )
    tiers.append(4, entry_records=4)
    tiers.append(3, partition=1)
    size = server.append_only_size()
    for _ in range(2):  # rolls, and goes on in the same segment
        tiers.clock.advance(5)
        tiers.append(6, entry_records=3)
    tiers.append(4, partition=1)
    appended = {partition: tiers.expected(partition) for partition in (0, 1)}
    cuts, places = Cuts.of(server, size)
    assert len(places) > 20
    tiers.clock.advance(1)

    for place in cuts.some(places, most):
        cuts.start(place)
        log = TopicLog(tiers.topic, tiers.hot, tiers.table())
        survived = {partition: values_of(log, partition) for partition in (0, 1)}
        for partition, kept in survived.items():
            assert kept == appended[partition][: len(kept)], place
            assert len(kept) >= 3, place  # what the file was not cut below
        expected = {partition: dict(kept) for partition, kept in survived.items()}
        # The other partition first, and before the last start alone: one of them meets what half a
        # transaction left before it is recovered.
        for order in ((1,), (0, 1)):
            for partition in order:
                tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
                end = tiers.hot.recover(tiers.topic.partition(partition), 0).log_end
                value = b"after %d" % end
                tiers._append(partition, [value])
                expected[partition][end] = value
            server.restart(clean=False)
            if 0 not in order:  # a transaction that lacked no more than its EXEC may be back
                found = values_of(log)
                assert found == appended[0][: max(len(found), len(expected[0]))], place
                expected[0] = dict(found)
            for partition, kept in expected.items():
                assert values_of(log, partition) == sorted(kept.items()), (place, order)
        for start in range(0, 18, 4):
            wanted = [row for row in sorted(expected[0].items()) if row[0] >= start]
            assert values_of(log, 0, start) == wanted, place
        tiers.archiver().run_once()
        for partition, kept in expected.items():
            assert tiers.archived(partition) == sorted(kept.items()), place
            assert values_of(log, partition) == sorted(kept.items()), place
        shutil.rmtree(tiers.root)


@pytest.mark.parametrize("most", [8, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_refused_first", [False, True], ids=["recovered", "refused first"])
@pytest.mark.parametrize(
    ("count", "gap_ms"),
    # Where the clock says so, the gap is as long as what one millisecond can take.
    [(4, 0), pytest.param(APPENDS_PER_MS, 1, id="as long as the gap")],
)
def test_what_is_appended_after_half_of_an_older_append_outlives_the_next_starts(
    make_redis, make_tiers, redis_program, most, is_refused_first, count, gap_ms
):
    """It closed the stream. What opens it again may be refused when the file is read: the half's
    entries lie above it by then.
    """
    server = make_redis(program=redis_program, appendfsync="always")
    tiers = make_tiers(url=server.url, local_retention_ms=-1, lakelog_entry_format="arrow")
    tiers.append(4, entry_records=4)
    size = server.append_only_size()
    with server.client() as client:
        older_append(tiers, client, count)
    appended = [*tiers.expected(0), *((4 + n, b"older") for n in range(count))]
    cuts, places = Cuts.of(server, size)
    written_ms = tiers.clock.now_ms()
    for place in cuts.some(places, most):
        cuts.start(place)
        tiers.clock.time_ms = written_ms
        log = TopicLog(tiers.topic, tiers.hot, tiers.table())
        kept = values_of(log)
        assert kept == appended[: len(kept)], place
        for _ in range(3):
            tiers.clock.advance(gap_ms)
            tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
            if is_refused_first:
                with server.client() as client:
                    older_append(tiers, client)
            end = tiers.hot.recover(tiers.topic.partition(0), 0).log_end
            tiers._append(0, [b"after %d" % end])
            kept.append((end, b"after %d" % end))
            server.restart(clean=False)
            found = values_of(log)
            if len(found) > len(kept):  # the transaction lacked no more than its EXEC
                kept = [*appended, kept[-1]]
            assert found == kept, place
        tiers.archiver().run_once()
        assert values_of(log) == kept, place
        shutil.rmtree(tiers.root)


def test_what_is_appended_after_a_planned_stop_outlives_half_of_an_older_refused_append(
    make_redis, make_tiers, redis_program
):
    """Refused while all was paused, it closed the stream; no recovery follows."""
    server = make_redis(program=redis_program, appendfsync="always")
    tiers = make_tiers(url=server.url, local_retention_ms=-1, lakelog_entry_format="arrow")
    tiers.append(4, entry_records=4)
    partition = tiers.topic.partition(0)
    tiers.hot.pause([partition])
    size = server.append_only_size()
    with server.client() as client:
        older_append(tiers, client)
    cuts, places = Cuts.of(server, size)
    for place in places:
        cuts.start(place)
        tiers.hot.resume([partition])
        log = TopicLog(tiers.topic, tiers.hot, tiers.table())
        kept = tiers.expected(0)
        tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
        tiers._append(0, [b"after"])
        kept.append((4, b"after"))
        for _ in range(2):
            server.restart(clean=False)
            assert values_of(log) == kept, place


def test_a_stream_that_an_older_lakelog_left_closed_takes_entries(redis_client, make_tiers):
    tiers = make_tiers()
    tiers.append(2)
    keys = Keys(tiers.hot.keyspace).partition(tiers.topic.partition(0))
    redis_client.execute_command("XSETID", keys.stream, LARGEST_ID)
    tiers.append(2)
    redis_client.execute_command("XSETID", keys.stream, LARGEST_ID)
    redis_client.hset(keys.state, "run_id", "another")
    end = tiers.hot.recover(tiers.topic.partition(0), 0).log_end
    tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
    tiers._append(0, [b"after"])
    log = TopicLog(tiers.topic, tiers.hot, tiers.table())
    assert [offset for offset, _ in values_of(log)] == [0, 1, 2, 3, end]

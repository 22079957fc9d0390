"""A power cut anywhere in the file that appends go to: half a transaction harms no reader."""

from __future__ import annotations

import shutil

import pytest
from cuts import Cuts, values_of

from lakelog.errors import HotTierPausedError, RecoveryNeededError
from lakelog.hot.hot_log import HotLog
from lakelog.read.unified_log import UnifiedLog

APPENDS_PER_MS = 16384  # of common.lua


@pytest.mark.usefixtures("each_way_to_append")
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
        log = UnifiedLog(tiers.topic, tiers.hot, tiers.table())
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


@pytest.mark.parametrize("each_way_to_append", ["transaction"], indirect=True)
@pytest.mark.usefixtures("each_way_to_append")
@pytest.mark.parametrize("most", [8, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_refused_first", [False, True], ids=["recovered", "refused first"])
@pytest.mark.parametrize(
    ("count", "gap_ms"),
    # Where the clock says so, the gap is as long as what one millisecond can take.
    [(4, 0), pytest.param(APPENDS_PER_MS, 1, id="as long as the gap")],
)
def test_what_is_appended_after_half_a_transaction_outlives_the_next_starts(
    make_redis, make_tiers, redis_program, monkeypatch, most, is_refused_first, count, gap_ms
):
    """Its first command closes the stream, which small appends do not open.

    So does that of a transaction that is refused, and what opens the stream again may be refused
    when the file is read: the half's entries lie above it by then.
    """
    server = make_redis(program=redis_program, appendfsync="always")
    tiers = make_tiers(url=server.url, local_retention_ms=-1, lakelog_entry_format="arrow")
    tiers.append(4, entry_records=4)
    size = server.append_only_size()
    tiers.append(count, entry_records=count // 2 if gap_ms == 0 else count)
    appended = tiers.expected(0)
    cuts, places = Cuts.of(server, size)
    by_transaction = HotLog.append_all
    monkeypatch.undo()  # from here on, by the script alone
    written_ms = tiers.clock.now_ms()
    for place in cuts.some(places, most):
        cuts.start(place)
        tiers.clock.time_ms = written_ms
        log = UnifiedLog(tiers.topic, tiers.hot, tiers.table())
        kept = values_of(log)
        assert kept == appended[: len(kept)], place
        for _ in range(3):
            tiers.clock.advance(gap_ms)
            tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
            if is_refused_first:
                with monkeypatch.context() as patch:
                    patch.setattr(HotLog, "append_all", by_transaction)
                    with pytest.raises(RecoveryNeededError):
                        tiers._append(0, [b"refused"])
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


@pytest.mark.parametrize("each_way_to_append", ["transaction"], indirect=True)
@pytest.mark.usefixtures("each_way_to_append")
def test_what_is_appended_after_a_planned_stop_outlives_half_a_refused_transaction(
    make_redis, make_tiers, redis_program, monkeypatch
):
    """Refused while all was paused, it closed the stream; no recovery follows."""
    server = make_redis(program=redis_program, appendfsync="always")
    tiers = make_tiers(url=server.url, local_retention_ms=-1, lakelog_entry_format="arrow")
    tiers.append(4, entry_records=4)
    partition = tiers.topic.partition(0)
    tiers.hot.pause([partition])
    size = server.append_only_size()
    with pytest.raises(HotTierPausedError):
        tiers._append(0, [b"refused"])
    cuts, places = Cuts.of(server, size)
    monkeypatch.undo()  # from here on, by the script alone
    for place in places:
        cuts.start(place)
        tiers.hot.resume([partition])
        log = UnifiedLog(tiers.topic, tiers.hot, tiers.table())
        kept = tiers.expected(0)
        tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
        tiers._append(0, [b"after"])
        kept.append((4, b"after"))
        for _ in range(2):
            server.restart(clean=False)
            assert values_of(log) == kept, place

"""What every cold table must do. A second implementation gives its own ``make_table`` and passes.

``make_table(rows_of=…)`` opens the same, at first empty, table anew, as another process would.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import EPOCH_MS, MadeUpRows, archive, batch_of
from msgspec.structs import replace

from lakelog.base import failpoints
from lakelog.cleanup.erasure import Erasure
from lakelog.cold.answers import Orphans, Vacuumed
from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart
from lakelog.cold.reserve import reserve, reserving
from lakelog.cold.segment import SegmentFile, SegmentIndex
from lakelog.cold.table import NO_TABLE, ColdSnapshot, ColdTable
from lakelog.errors import (
    ContradictionError,
    InvalidArgumentError,
    MissingFileError,
    UnknownTopicIdError,
)
from lakelog.operate.erasure.condition import RecordCondition
from lakelog.values.config import DAY_MS, TopicConfig
from lakelog.values.producer_calls import CUT, ProducerCall
from lakelog.values.record import RECORDS, OffsetAndTimestamp, Record, to_records
from lakelog.values.reservation import FEW_OFFSETS, FIRST_OFFSETS, LEAST_OFFSETS, Wanted
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import OffsetRange, TopicPartition

ROWS = MadeUpRows()
ORDERS_0 = TopicPartition("orders", 0)


def read(
    table: ColdTable, snapshot: ColdSnapshot, start: int, end: int, partition: int = 0
) -> list[Record]:
    files = snapshot.files.files_between(partition, start, end)
    return [
        record
        for batch in table.read(files, start, end)
        for record in to_records(TopicPartition("orders", partition), batch)
    ]


def offsets(table: ColdTable, snapshot: ColdSnapshot, partition: int = 0) -> list[int]:
    return [record.offset for record in read(table, snapshot, 0, 2**53, partition)]


def settings(topic: Topic, version: int, **config: Any) -> Topic:
    """The topic after an alteration."""
    return replace(topic, config_version=version, config=TopicConfig.of(**config))


def sent(
    producer_id: int, base_offset: int, *, epoch: int = 0, checksum: str = "0a1b2c3d"
) -> ProducerCall:
    return ProducerCall(producer_id, epoch, 5, 6, base_offset, checksum=checksum)


def known(table: ColdTable) -> dict[int, tuple[ProducerCall, ...]]:
    found = table.last_calls([0, 1, 2])
    return {number: tuple(calls) for number, calls in found.items() if calls}


def rewrite(snapshot: ColdSnapshot, **more: Any) -> Change:
    """All files of partition 0's first segment as one."""
    files = snapshot.files.segments(0)[0].files
    return Change(
        adds=(Rewrite(ORDERS_0, files[0].segment, files, **more),),
        removes=files,
        data_change=False,
    )


def archive_and_close(table: ColdTable, topic: Topic, *bounds: int) -> ColdSnapshot:
    """A first segment of so many records and files, and a newer one with a record."""
    first = table.apply(archive(topic, table.snapshot(), *bounds), table.snapshot()).snapshot
    return table.apply(archive(topic, first, bounds[-1] + 1, segment=bounds[-1]), first).snapshot


class ColdTableContract:
    can_vacuum = True  # or the catalog alone may
    dry_vacuum_tells_bytes = True  # not every platform says beforehand how many would go
    shows_files = True  # or its rows alone are to be seen
    knows_file_sizes = True  # or each look has shares of its own, of a sum that is the same

    def comparable(self, files: SegmentIndex) -> list[SegmentFile | int]:
        """What every look at a snapshot says of its files."""
        if self.knows_file_sizes:
            return list(files)
        total = sum(file.size_bytes for file in files)
        return [total, *(replace(file, size_bytes=0) for file in files)]

    def delete(self, table: Any, path: str) -> None:
        """Delete one of its files, as somebody does who knows nothing of its log."""
        table.storage.delete_file(f"{table.path}/{path}")

    @pytest.fixture
    def table(self, make_table: Any) -> ColdTable:
        return make_table()

    # -- which one it is -------------------------------------------------------------------------

    def test_it_has_one_id_for_whoever_opens_it(
        self, table: Any, make_table: Any, topic: Topic
    ) -> None:
        assert table.table_id() is None
        assert table.where
        table.apply(archive(topic, table.snapshot(), 10), table.snapshot())
        table_id = table.table_id()
        assert table_id
        table.apply(archive(topic, table.snapshot(), 20), table.snapshot())
        assert make_table().table_id() == table_id
        assert make_table().where == table.where

    def test_its_data_files_hold_its_records(self, table, make_table, topic: Topic):
        assert make_table().data_files(0) == []
        archive_and_close(table, topic, 500, 1000)
        if not self.shows_files:
            with pytest.raises(InvalidArgumentError, match="are not to be seen"):
                make_table().data_files(0)
            return
        files = make_table().data_files(0)
        assert sum(file.records for file in files) == 1001
        assert [file.start_offset for file in files] == [0, 500, 1000]
        assert make_table().data_files(1) == []

    # -- appending -------------------------------------------------------------------------------

    def test_a_table_nobody_wrote_to_is_empty(self, table):
        snapshot = table.snapshot()
        assert snapshot.version == NO_TABLE
        assert len(snapshot.files) == 0
        assert snapshot.archived_end(0) == snapshot.log_start(0) == snapshot.cleaned_end(0) == 0
        assert snapshot.files.file_at(0, 0) is None
        assert snapshot.files.files_between(0, 0, 100) == []
        assert table.offset_for_timestamp(snapshot, 0, 0, 0) is None
        assert table.max_timestamp(snapshot, 0, 0) is None
        assert table.orphans() == Orphans()

    def test_archived_records_come_back_byte_for_byte(self, table, make_table, topic: Topic):
        applied = table.apply(archive(topic, table.snapshot(), 1500, 2000), table.snapshot())

        assert applied.superseded == frozenset()
        assert [(f.start_offset, f.end_offset, f.records) for f in applied.files] == [
            (0, 1500, 1500),
            (1500, 2000, 500),
        ]
        for opened in (table, make_table()):
            snapshot = opened.snapshot()
            assert snapshot.archived_end(0) == 2000
            assert self.comparable(snapshot.files) == self.comparable(applied.files)
            assert read(opened, snapshot, 0, 2000) == ROWS.records(ORDERS_0, 0, 2000)

    # -- producers -------------------------------------------------------------------------------

    def test_what_producers_had_sent_last_moves_with_the_archived_end(
        self, table, make_table, topic: Topic
    ):
        assert not any(table.last_calls([0, 1]).values())
        first = [sent(7, 2), sent(2**62 - 1, 4, checksum=CUT)]
        table.apply(archive(topic, table.snapshot(), 10, calls=first), table.snapshot())
        beside = archive(topic, table.snapshot(), 5, partition=1, calls=[sent(7, 0)])
        table.apply(beside, table.snapshot())
        for opened in (table, make_table()):
            assert known(opened) == {0: tuple(first), 1: (sent(7, 0),)}

        second = [sent(7, 2), sent(8, 15, epoch=3)]
        table.apply(archive(topic, table.snapshot(), 20, calls=second), table.snapshot())
        for opened in (table, make_table()):
            assert known(opened) == {0: tuple(second), 1: (sent(7, 0),)}

        table.apply(archive(topic, table.snapshot(), 30), table.snapshot())
        for opened in (table, make_table()):
            assert known(opened) == {1: (sent(7, 0),)}

    def test_what_does_not_land_tells_nothing_of_producers(self, table, make_table, topic: Topic):
        old = table.snapshot()
        first = archive(topic, old, 10, calls=[sent(7, 2)])
        table.apply(archive(topic, old, 5, partition=1), old)
        table.apply(first, table.snapshot())
        late = make_table().apply(archive(topic, old, 12, calls=[sent(7, 11)]), old)
        assert late.superseded == {0}
        for opened in (table, make_table()):
            assert known(opened) == {0: (sent(7, 2),)}

    def test_cleaning_and_reserving_leave_what_producers_had_sent(
        self, table, make_table, topic: Topic
    ):
        for end, segment in ((10, 0), (20, 0), (30, 20)):
            change = archive(topic, table.snapshot(), end, segment=segment, calls=[sent(7, 2)])
            table.apply(change, table.snapshot())
        reserve = reserving(topic, table, lambda *own: None)
        reserved = reserve({topic.partition(0): Wanted(0), topic.partition(1): Wanted(0)})
        assert {tp.partition: one.calls for tp, one in reserved.items()} == {
            0: (sent(7, 2),),
            1: (),
        }
        table.apply(Change(registers={LogStart(0): 12}), table.snapshot())
        snapshot = table.snapshot()
        goes = tuple(file for file in snapshot.files.of_partition(0) if file.end_offset <= 10)
        table.apply(Change(removes=goes), snapshot)
        table.mirror(settings(topic, 3))
        for opened in (table, make_table()):
            assert known(opened) == {0: (sent(7, 2),)}

    # -- reserving -------------------------------------------------------------------------------

    def test_what_began_with_few_offsets_reserves_as_many_again(self, table, make_table, topic):
        first = reserve(table, {0: Wanted(1_000, offsets=7)})[0]
        assert first == OffsetRange(1_000, 1_000 + FEW_OFFSETS)
        second = reserve(make_table(), {0: Wanted(3, offsets=5_000)})[0]
        assert second == OffsetRange(first.end, first.end + 5_000)
        table.apply(archive(topic, table.snapshot(), 9_000), table.snapshot())
        third = reserve(make_table(), {0: Wanted(3, offsets=5)})[0]
        assert third == OffsetRange(9_000, 18_000)
        assert reserve(table, {0: Wanted(0)})[0] == OffsetRange(18_000, 18_000 + LEAST_OFFSETS)

    def test_no_two_reserve_the_same_offsets(self, table, make_table, topic: Topic):
        """Beside an archiver, by a table that is new, and by one that looked long ago."""
        other = make_table()
        other.snapshot()
        first = reserve(table, {0: Wanted(0), 1: Wanted(5)})
        table.apply(archive(topic, table.snapshot(), 10), table.snapshot())
        second = reserve(other, {0: Wanted(0)})
        third = reserve(make_table(), {0: Wanted(second[0].end + 7)})

        assert first == dict.fromkeys([0, 1], OffsetRange(FIRST_OFFSETS, 2 * FIRST_OFFSETS))
        assert second == {0: OffsetRange(2 * FIRST_OFFSETS, 3 * FIRST_OFFSETS)}
        assert third[0].start == second[0].end + 7
        for opened in (table, make_table()):
            snapshot = opened.snapshot()
            ends = [snapshot.reserved_end(number) for number in range(3)]
            assert ends == [third[0].end, first[1].end, FIRST_OFFSETS]
            assert snapshot.archived_end(0) == 10

    def test_who_reserves_while_another_does_gets_what_follows(self, table, make_table):
        met = []

        def another() -> None:
            if not met:
                met.append(None)
                met.append(reserve(make_table(), {0: Wanted(0)})[0])

        with failpoints.armed("cold.before_commit", another):
            mine = reserve(table, {0: Wanted(0)})[0]
        ranges = sorted([mine, met[1]])
        assert ranges[0].start == FIRST_OFFSETS
        assert ranges[0].end == ranges[1].start

    def test_a_change_without_anything_changes_nothing(self, table, topic: Topic):
        before = table.apply(archive(topic, table.snapshot(), 10), table.snapshot()).snapshot
        assert table.apply(Change(), before).snapshot.version == before.version

    def test_a_change_applied_twice_is_superseded_the_second_time(self, table, topic: Topic):
        empty = table.snapshot()
        change = archive(topic, empty, 100)
        table.apply(change, empty)

        again = table.apply(change, empty)

        assert again.files == ()
        assert again.superseded == {0}
        assert offsets(table, again.snapshot) == list(range(100))

    def test_partitions_stand_or_fall_one_by_one(self, table, make_table, topic: Topic):
        empty = table.snapshot()
        other = make_table()
        other.apply(archive(topic, empty, 60, partition=1), other.snapshot())
        changes = [archive(topic, empty, 50, partition=number) for number in (0, 1)]

        applied = table.apply(
            Change(
                adds=changes[0].adds + changes[1].adds,
                registers={**changes[0].registers, **changes[1].registers},
            ),
            empty,
        )

        assert applied.superseded == {1}
        assert [file.partition for file in applied.files] == [0]
        assert offsets(table, applied.snapshot, 0) == list(range(50))
        assert offsets(table, applied.snapshot, 1) == list(range(60))

    def test_a_snapshot_follows_the_commits_of_others(self, table, make_table, topic: Topic):
        first = table.apply(archive(topic, table.snapshot(), 10), table.snapshot()).snapshot
        assert table.snapshot(first) is first
        other = make_table()
        other.apply(archive(topic, first, 25), other.snapshot())

        second = table.snapshot(newer_than=first)

        assert second.version > first.version
        assert second.archived_end(0) == 25
        assert offsets(table, second) == list(range(25))
        assert offsets(table, first) == list(range(10))  # the old one still answers

    @pytest.mark.parametrize(
        "lost", [{99}, {0}, {50}], ids=["the last", "the first", "one in between"]
    )
    def test_a_range_that_lacks_a_record_is_not_written(self, make_table, topic: Topic, lost):
        table = make_table(MadeUpRows(lost=frozenset(lost)))
        before = table.snapshot()
        with pytest.raises(ContradictionError):
            table.apply(archive(topic, before, 100), before)
        assert offsets(table, table.snapshot()) == []
        assert table.snapshot().archived_end(0) == 0

    def test_an_error_of_the_hot_tier_is_raised_as_it_was(self, make_table, topic: Topic):
        class Away(Exception):
            pass

        def rows_of(hot_range: HotRange):
            yield next(iter(ROWS(hot_range)))
            raise Away

        table = make_table(rows_of)
        with pytest.raises(Away):
            table.apply(archive(topic, table.snapshot(), 1000), table.snapshot())
        assert len(table.snapshot().files) == 0

    def test_what_would_lose_or_double_records_is_refused(self, table, topic: Topic):
        empty = table.snapshot()
        snapshot = table.apply(archive(topic, empty, 100), empty).snapshot
        file = snapshot.files.of_partition(0)[0]
        tp = topic.partition(0)
        other_topic = Topic(topic.name, type(topic.topic_id)(int=1), 3)
        for wrong in (
            lambda: Change(adds=(HotRange(tp, topic.topic_id, 0, 100, 110),)),
            lambda: Change(registers={ArchivedEnd(0): 110}),
            lambda: Change(adds=(Rewrite(tp, 0, (file,)),)),
            lambda: table.apply(archive(topic, empty, 120), snapshot),
            lambda: table.apply(Change(removes=(file,)), snapshot),
            lambda: table.apply(Change(removes=(file,), registers={LogStart(0): 99}), snapshot),
        ):
            with pytest.raises(InvalidArgumentError):
                wrong()
        with pytest.raises(UnknownTopicIdError):
            table.apply(archive(other_topic, snapshot, 120), snapshot)
        assert table.snapshot().version == snapshot.version

    # -- removing and rewriting ------------------------------------------------------------------

    def test_the_log_start_and_the_removals_are_one_commit(self, table, topic: Topic):
        before = table.apply(archive(topic, table.snapshot(), 100, 200), table.snapshot()).snapshot
        first = before.files.of_partition(0)[0]

        change = Change(removes=(first,), registers={LogStart(0): 100})
        after = table.apply(change, before).snapshot

        assert after.version == before.version + 1
        assert (after.log_start(0), after.archived_end(0)) == (100, 200)
        assert offsets(table, after) == list(range(100, 200))
        with pytest.raises(InvalidArgumentError, match="only grows"):
            table.apply(Change(registers={LogStart(0): 50}), after)

    def test_a_rewrite_keeps_the_records_and_the_range(self, table, topic: Topic):
        before = archive_and_close(table, topic, 100, 900, 1000)
        applied = table.apply(rewrite(before), before)
        assert [(f.start_offset, f.end_offset, f.records) for f in applied.files] == [
            (0, 1000, 1000)
        ]
        assert list(applied.snapshot.files)[:1] == list(applied.files)
        assert read(table, applied.snapshot, 0, 1001) == ROWS.records(ORDERS_0, 0, 1001)

    def test_a_compaction_leaves_out_offsets_and_dates_tombstones(self, table, topic: Topic):
        before = table.apply(archive(topic, table.snapshot(), 60, 100), table.snapshot()).snapshot
        files = tuple(before.files)
        without = OffsetSet.of([*range(20), *range(55, 60)])
        change = Change(
            adds=(Rewrite(ORDERS_0, 0, files[:1], without, delete_horizon_ms=EPOCH_MS),),
            removes=files[:1],
            registers={CleanedEnd(0): 60},
        )

        after = table.apply(change, before).snapshot

        assert after.cleaned_end(0) == 60
        kept = [*range(20, 55), *range(60, 100)]
        assert offsets(table, after) == kept
        assert read(table, after, 0, 100) == [ROWS.record(ORDERS_0, offset) for offset in kept]
        found = after.files.file_at(0, 57)  # a hole that compaction made
        assert found is not None
        assert found.start_offset == 60
        columns = ["offset", "delete_horizon"]
        rows = pa.Table.from_batches(table.read(list(after.files), 0, 60, columns)).to_pylist()
        dated = [row["offset"] for row in rows if row["delete_horizon"] is not None]
        assert dated == [26, 39, 52]

    def test_an_erasure_takes_records_and_all_but_the_offset_of_the_last(
        self, table, make_table, topic: Topic
    ):
        before = archive_and_close(table, topic, 60, 100)
        erased = {3, 4, 59, 77, 100}
        condition = RecordCondition.of(where="offset in (3, 4, 59, 77, 100)")

        done = Erasure(topic, table, condition).run()

        after = make_table().snapshot()
        assert done.failures == {}
        assert done.partitions[0].offsets == tuple(
            OffsetRange(*span) for span in [(3, 5), (59, 60), (77, 78), (100, 101)]
        )
        assert done.partitions[0].nulled_offset == 100
        kept = [offset for offset in range(100) if offset not in erased]
        found = read(table, after, 0, 101)
        assert found[:-1] == [ROWS.record(ORDERS_0, offset) for offset in kept]
        last = found[-1]
        assert (last.offset, last.key, last.value, last.headers) == (100, None, None, ())
        assert last.timestamp_ms == ROWS.record(ORDERS_0, 100).timestamp_ms
        assert (after.erased_end(0), after.archived_end(0)) == (78, 101)
        assert after.cleaned_end(0) == before.cleaned_end(0)
        again = Erasure(topic, make_table(), condition).run()
        assert (again.records, again.discarded) == (0, ())
        # it goes on
        table.apply(archive(topic, after, 110, segment=100), after)
        assert offsets(table, table.snapshot()) == [*kept, *range(100, 110)]

    # -- settings --------------------------------------------------------------------------------

    def test_a_table_is_made_with_the_topics_settings(self, table, topic: Topic):
        changed = settings(topic, 4, retention_ms=5)
        table.mirror(changed)
        assert table.snapshot().version == NO_TABLE  # it is made by the first change
        after = table.apply(archive(topic, table.snapshot(), 10), table.snapshot()).snapshot
        table.mirror(changed)
        assert table.snapshot() is after
        assert table.vacuum().retention_ms == topic.config["file.delete.delay.ms"]

    def test_a_table_that_is_not_there_is_made_as_it_was_told_last(self, table, topic: Topic):
        table.mirror(replace(topic, config_version=2, deleted_ms=EPOCH_MS))
        table.mirror(replace(topic, config_version=2))  # it came back
        after = table.apply(archive(topic, table.snapshot(), 10), table.snapshot()).snapshot
        assert not after.is_deleted

    def test_changed_settings_are_a_commit_and_the_same_ones_are_not(
        self, table, make_table, topic: Topic
    ):
        before = table.apply(archive(topic, table.snapshot(), 10), table.snapshot()).snapshot
        changed = settings(topic, 7, file_delete_delay_ms=1234)
        for opened in (table, make_table()):
            for _ in range(2):
                opened.mirror(changed)
            assert opened.snapshot().version == before.version + 1
            assert opened.vacuum().retention_ms == 1234

    def test_an_older_config_version_never_comes_back(self, table, make_table, topic: Topic):
        table.apply(archive(topic, table.snapshot(), 10), table.snapshot())
        table.mirror(settings(topic, 7, file_delete_delay_ms=7000))
        version = table.snapshot().version
        for opened in (table, make_table()):
            opened.mirror(settings(topic, 6, file_delete_delay_ms=6000))
            assert opened.vacuum().retention_ms == 7000
        assert table.snapshot().version == version

    # -- files that go ---------------------------------------------------------------------------

    def test_vacuum_deletes_what_was_removed_longer_ago_than_the_retention(
        self, table, make_table, topic: Topic
    ):
        before = archive_and_close(table, topic, 50, 100)
        after = table.apply(rewrite(before), before).snapshot
        size_bytes = sum(file.size_bytes for file in before.files.segments(0)[0].files)

        day = table.vacuum()
        assert (day.files, day.size_bytes, day.retention_ms) == (0, 0, DAY_MS)
        assert offsets(table, before) == list(range(101))  # a reader of then still may

        table.mirror(settings(topic, 2, file_delete_delay_ms=0))
        if not self.can_vacuum:
            assert day.left_files == 0
            assert table.vacuum() == table.vacuum(dry_run=True) == Vacuumed(0, 0, 0, left_files=2)
            assert offsets(table, before) == list(range(101))
            return
        told_bytes = size_bytes if self.dry_vacuum_tells_bytes else None
        assert table.vacuum(dry_run=True) == Vacuumed(2, told_bytes, 0)
        assert make_table().vacuum() == Vacuumed(2, size_bytes, 0)
        assert table.vacuum() == make_table().vacuum(dry_run=True) == Vacuumed(0, 0, 0)
        with pytest.raises(MissingFileError):
            offsets(table, before)
        assert offsets(table, table.snapshot(after)) == list(range(101))

    def test_a_vacuum_keeps_what_files_were_made_of_that_somebody_deleted(
        self, table, make_table, topic: Topic
    ):
        if not (self.can_vacuum and self.shows_files):
            pytest.skip("the catalog alone deletes or shows files")
        before = archive_and_close(table, topic, 50, 100)
        table.apply(rewrite(before), before)
        table.mirror(settings(topic, 2, file_delete_delay_ms=0))
        self.delete(table, table.data_files(0)[0].path)

        for _ in range(2):
            with pytest.raises(MissingFileError, match="Nothing was deleted") as error:
                make_table().vacuum()
            assert "partition=0/segment=0/" in str(error.value)
        assert offsets(table, before) == list(range(101))

    def test_a_file_that_took_anothers_place_meanwhile_is_not_missing(
        self, table, make_table, topic: Topic
    ):
        """Though a plan of before has the files that are gone now."""
        if not self.shows_files:
            pytest.skip("the catalog does not show files")
        before = archive_and_close(table, topic, 50, 100)
        old = [file.path for file in table.data_files(0) if file.segment == 0]
        behind = make_table()
        assert behind.missing(behind.snapshot().files) == []
        table.apply(rewrite(before), before)
        for path in old:
            self.delete(table, path)
        assert behind.missing(before.files) == []
        made = next(file.path for file in table.data_files(0) if file.segment == 0)
        self.delete(table, made)
        assert [file.segment for file in behind.missing(behind.snapshot().files)] == [0]

    def test_there_is_nothing_to_vacuum_without_a_table(self, table):
        assert table.vacuum() == Vacuumed(0, 0, DAY_MS)

    def test_a_rewrite_that_leaves_out_a_file_in_its_range_is_refused(self, table, topic: Topic):
        before = table.apply(
            archive(topic, table.snapshot(), 10, 20, 30), table.snapshot()
        ).snapshot
        first, _, last = before.files.of_partition(0)
        change = Change(adds=(Rewrite(ORDERS_0, 0, (first, last)),), removes=(first, last))
        with pytest.raises(InvalidArgumentError, match="leaves out"):
            table.apply(change, before)

    def test_a_rewrite_that_loses_its_sources_meanwhile_is_superseded(
        self, table, make_table, topic: Topic
    ):
        before = archive_and_close(table, topic, 50, 100)
        other = make_table()
        passed = []

        def meanwhile() -> None:
            if not passed:  # the other one passes here too
                passed.append(True)
                other.apply(rewrite(other.snapshot()), other.snapshot())

        with failpoints.armed("cold.before_commit", meanwhile):
            applied = table.apply(rewrite(before), before)

        assert passed
        assert applied.superseded == {0}
        assert applied.files == ()
        assert len(applied.snapshot.files) == 2
        assert offsets(table, table.snapshot()) == list(range(101))

    # -- reading ---------------------------------------------------------------------------------

    def test_a_projection_has_the_asked_columns_in_the_asked_order(self, table, topic: Topic):
        snapshot = table.apply(archive(topic, table.snapshot(), 100), table.snapshot()).snapshot
        batches = list(table.read(list(snapshot.files), 98, 100, ["value", "timestampType"]))
        found = pa.Table.from_batches(batches)
        assert found.schema == pa.schema([RECORDS.field("value"), RECORDS.field("timestampType")])
        assert found["value"].to_pylist() == [b"value-98", b"value-99"]
        with pytest.raises(InvalidArgumentError, match="no column 'colour'"):
            list(table.read(list(snapshot.files), 0, 1, ["colour"]))

    @given(data=st.data())
    def test_seeks_agree_with_a_list(self, make_fresh_table, topic: Topic, data):
        """Offsets, ranges and timestamps, over files, segments, gaps and times in any order."""
        times = st.one_of(st.just(-1), st.integers(0, 30), st.just(253_402_300_800_000))
        pieces = data.draw(
            st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=5)
        )
        log: list[OffsetAndTimestamp] = []
        made_up: dict[int, int] = {}
        edges = []  # (segment, end)
        end = segment = 0
        for records, gap in pieces:
            if gap:
                segment = end + gap
                end = segment
            for offset in range(end, end + records):
                made_up[offset] = data.draw(times)
                log.append(OffsetAndTimestamp(offset, made_up[offset]))
            end += records
            edges.append((segment, end))
        table = make_fresh_table(MadeUpRows(times=made_up))
        snapshot = table.snapshot()
        for segment, bound in edges:
            snapshot = table.apply(
                archive(topic, snapshot, bound, segment=segment), snapshot
            ).snapshot

        low, high = sorted(data.draw(st.tuples(*[st.integers(0, end + 5)] * 2)))
        found = read(table, snapshot, low, high)
        assert [(r.offset, r.timestamp_ms) for r in found] == [x for x in log if low <= x[0] < high]
        above = [entry for entry in log if entry.offset >= low]
        at = snapshot.files.file_at(0, low)
        assert (at is None) == (not above)
        if at is not None:
            assert at.start_offset <= above[0].offset < at.end_offset
        target = data.draw(st.integers(0, 31))
        assert table.offset_for_timestamp(snapshot, 0, target, low) == next(
            (entry for entry in above if entry.timestamp_ms >= target), None
        )
        newest = max((entry.timestamp_ms for entry in above), default=-1)
        assert table.max_timestamp(snapshot, 0, low) == (
            None if newest < 0 else next(e for e in above if e.timestamp_ms == newest)
        )

    def test_a_large_range_comes_in_small_pieces(self, make_fresh_table, topic: Topic):
        """Bounded memory: no batch is larger than a row group, whatever the file."""
        large = b"x" * 1000

        def rows_of(hot_range: HotRange):
            for start in range(hot_range.start_offset, hot_range.end_offset, 5000):
                yield batch_of(
                    [Record("orders", 0, at, 0, value=large) for at in range(start, start + 5000)]
                )

        table = make_fresh_table(rows_of)
        snapshot = table.apply(archive(topic, table.snapshot(), 40_000), table.snapshot()).snapshot
        batches = list(table.read(list(snapshot.files), 0, 40_000))
        assert sum(batch.num_rows for batch in batches) == 40_000
        assert max(batch.nbytes for batch in batches) <= 17 * 2**20

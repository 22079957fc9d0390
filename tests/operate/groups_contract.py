"""What holds of every table of groups."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

from msgspec.structs import replace

from lakelog.cold.by_path.root_table import PathRootTable
from lakelog.cold.store.storage import Storage
from lakelog.groups.recorded_offset import GroupType, RecordedOffset
from lakelog.operate.groups_table import DEFINITION, GroupsTable, Recording
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

Make = Callable[[], GroupsTable]


def at_path(storage: Storage) -> GroupsTable:
    return GroupsTable(PathRootTable(storage, DEFINITION))


KEYSPACE, OTHER = UUID(int=1), UUID(int=2)
NOW_MS = 1_700_000_000_123


def offset(group_id: str, at: int, partition: int = 0) -> RecordedOffset:
    return RecordedOffset(
        group_id,
        GroupType.CLASSIC,
        "consumer",
        TopicPartition("orders", partition),
        UUID(int=7),
        OffsetAndMetadata(at, "it's \u0000 'half' way", 4),
        NOW_MS - 5,
    )


def recording(sequence: int, *offsets: RecordedOffset, keyspace_id: UUID = KEYSPACE) -> Recording:
    return Recording("lakelog", keyspace_id, sequence, NOW_MS, offsets)


def what_was_written_is_read(make: Make) -> None:
    assert make().read(KEYSPACE) is None
    share = replace(
        offset("workers", 9),
        group_type=GroupType.SHARE,
        protocol_type="",
        committed=OffsetAndMetadata(9),
        committed_ms=None,
    )
    by_hand = replace(offset("{odd} id:0", 3), protocol_type="", topic_id=None)
    first = recording(1, offset("nightly", 5), offset("nightly", 6, 1), share, by_hand)
    assert make().write(first)
    found = make().read(KEYSPACE)
    assert found is not None
    assert set(found.offsets) == set(first.offsets)
    assert replace(found, offsets=()) == replace(first, offsets=())


def a_later_one_replaces_all_of_its_keyspace(make: Make) -> None:
    assert make().write(recording(1, offset("nightly", 5), offset("weekly", 6)))
    others = recording(8, offset("nightly", 1), keyspace_id=OTHER)
    assert make().write(others)
    last = recording(2, offset("nightly", 7))
    assert make().write(last)
    assert make().read(KEYSPACE) == last
    assert make().read(OTHER) == others
    empty = recording(3)
    assert make().write(empty)
    assert make().read(KEYSPACE) == empty
    assert make().read(OTHER) == others


def an_older_one_is_refused(make: Make) -> None:
    last = recording(5, offset("nightly", 7))
    assert make().write(last)
    assert not make().write(recording(4, offset("nightly", 3)))
    assert make().write(last)  # the same again, as after an answer that was lost
    assert make().read(KEYSPACE) == last


def of_many_at_once_the_newest_stays(make: Make) -> None:
    assert make().write(recording(1, offset("nightly", 1)))
    together = Barrier(3)

    def write(sequence: int) -> bool:
        table = make()
        together.wait()
        return table.write(recording(sequence, offset("nightly", sequence)))

    with ThreadPoolExecutor(3) as threads:
        done = list(threads.map(write, (2, 3, 4)))
    assert done[-1]
    assert make().read(KEYSPACE) == recording(4, offset("nightly", 4))


CONTRACT = (
    what_was_written_is_read,
    a_later_one_replaces_all_of_its_keyspace,
    an_older_one_is_refused,
    of_many_at_once_the_newest_stays,
)

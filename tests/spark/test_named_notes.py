"""Notes of commits add up to the same index whichever comes first; what a commit replaces. Pure."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from msgspec.structs import replace

from lakelog.cold.by_name.commit import NamedCommit
from lakelog.cold.by_name.notes import (
    ARCHIVE,
    CLEANUP,
    FOUND,
    Note,
    Slice,
    State,
    copy_to_json,
    parse_copy,
    version_of_path,
)
from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart
from lakelog.cold.segment import SegmentFile, archived_start, clean_sources, is_ours
from lakelog.errors import ContradictionError
from lakelog.values.producer_calls import ProducerCall
from lakelog.values.topic import Topic

TOPIC = Topic("orders", UUID(int=7), 2)


def slice_of(start: int, end: int, segment: int = 0, *, version: int = 1, **more: object) -> Slice:
    return Slice(
        0,
        segment,
        "archive",
        start,
        end,
        f"{start:016x}",
        version,
        5,
        end - start,
        start,
        end - 1,
        start,
        end - 1,
        10 * (end - start),
        **more,  # type: ignore[arg-type]
    )


def state_of(*slices: Slice, version: int = 9) -> State:
    end = max((one.end_offset for one in slices), default=0)
    return State(
        version,
        {ARCHIVE: 3, CLEANUP: 1},
        {ArchivedEnd(0): end},
        {one.key: one for one in slices},
    )


def files_of(state: State) -> list[SegmentFile]:
    return state.index().of_partition(0)


def hot(start: int, end: int, segment: int) -> Change:
    return Change(
        adds=(HotRange(TOPIC.partition(0), TOPIC.topic_id, segment, start, end),),
        registers={ArchivedEnd(0): end},
    )


def commit(change: Change, state: State, noted: State | None = None) -> NamedCommit:
    return NamedCommit.of(change, change.partitions, noted or state, state)


def test_a_slice_is_a_segment_file_whose_path_says_what_a_files_name_says() -> None:
    one = slice_of(20, 50, version=12)
    assert is_ours(one.path)
    assert archived_start(one.path) == 20
    assert version_of_path(one.path) == 12
    rewrite = Rewrite(TOPIC.partition(0), 0, tuple(files_of(state_of(one))))
    clean = replace(Slice.of(rewrite, 1), version=13)
    assert clean_sources(clean.path) == (20, 50, clean.tag)
    assert not is_ours(replace(one, kind=FOUND).path)
    assert version_of_path(replace(one, kind=FOUND).path) == 12


def test_a_note_comes_back_as_it_was_and_those_of_others_are_none() -> None:
    state = state_of(slice_of(0, 30), slice_of(30, 60))
    note = replace(commit(hot(60, 90, 0), state).note, base=state)
    text = note.to_json(TOPIC.topic_id)
    again = Note.parse(text, TOPIC.topic_id)
    assert again is not None
    assert again.to_json(TOPIC.topic_id) == text
    assert again.base is not None
    assert again.base.slices == state.slices
    assert again.registers == {ArchivedEnd(0): 90}
    for foreign in (None, "", "nightly job", '{"lakelog": "no"}', '["lakelog"]', '{"lakelog'):
        assert Note.parse(foreign, TOPIC.topic_id) is None
    assert Note.parse(text, UUID(int=8)) is None
    newer = json.dumps({**json.loads(text), "lakelog": 2})
    with pytest.raises(ContradictionError, match="format is 2"):
        Note.parse(newer, TOPIC.topic_id)


def test_an_archive_and_a_cleanup_add_up_whichever_comes_first() -> None:
    state = state_of(slice_of(0, 30), slice_of(30, 60, 30))
    archived = commit(hot(60, 90, 30), state).note
    first = files_of(state)[0]
    retained = commit(Change(removes=(first,), registers={LogStart(0): 30}), state).note
    one = state.after(11, [(10, archived), (11, retained)])
    other = state.after(11, [(10, retained), (11, archived)])
    for found in (one, other):
        assert found.epochs == {ARCHIVE: 4, CLEANUP: 2}
        assert found.registers == {ArchivedEnd(0): 90, LogStart(0): 30}
        assert sorted((s.start_offset, s.end_offset) for s in found.slices.values()) == [
            (30, 60),
            (60, 90),
        ]
    assert state.after(9, [(9, archived)]).slices == state.slices  # it is in it already


def test_what_producers_had_sent_last_is_of_the_newest_archive() -> None:
    def archived(end: int, *calls: ProducerCall, partition: int = 0) -> Change:
        add = HotRange(TOPIC.partition(partition), TOPIC.topic_id, 0, end - 10, end)
        return Change((add,), registers={ArchivedEnd(partition): end}, calls={partition: calls})

    def call(base_offset: int) -> ProducerCall:
        return ProducerCall(2**62 - 1, 4, 0, 2, base_offset, checksum="0a1b2c3d")

    state = State(0)
    for version, change in enumerate(
        [archived(10, call(3)), archived(20, call(12), partition=1), archived(20, call(15))], 1
    ):
        note = commit(change, state).note
        again = Note.parse(note.to_json(TOPIC.topic_id), TOPIC.topic_id)
        assert again is not None
        state = state.after(version, [(version, again)])
    assert state.calls == {0: (call(15),), 1: (call(12),)}
    copied = parse_copy(copy_to_json(state))
    assert (copied.registers, copied.calls) == (state.registers, state.calls)
    note = replace(commit(archived(30), state).note, base=state)
    based = Note.parse(note.to_json(TOPIC.topic_id), TOPIC.topic_id)
    assert based is not None
    assert based.base is not None
    assert based.base.calls == state.calls
    assert state.after(4, [(4, based)]).calls == {0: (), 1: (call(12),)}
    few = NamedCommit.of(
        archived(30, call(1), call(2), call(3)), frozenset({0}), state, state, most_calls=2
    )
    assert few.note.calls == {0: (call(2), call(3))}


def test_an_older_lakelog_noted_nothing_of_producers() -> None:
    state = state_of(slice_of(0, 30))
    content = json.loads(
        replace(commit(hot(30, 40, 0), state).note, base=state).to_json(TOPIC.topic_id)
    )
    del content["producers"], content["base"]["producers"]
    older = Note.parse(json.dumps(content), TOPIC.topic_id)
    assert older is not None
    assert older.calls == {}
    assert older.base is not None
    assert older.base.calls == {}


def test_what_was_looked_up_of_a_slice_does_not_bring_it_back() -> None:
    unknown = replace(slice_of(0, 30), size_bytes=-1)
    noted, state = state_of(unknown), state_of(slice_of(0, 30))
    archived = commit(hot(30, 60, 30), state, noted).note
    assert [one.key for one in archived.known] == [unknown.key]
    gone = commit(Change(removes=tuple(files_of(state)), registers={LogStart(0): 30}), state).note
    after = noted.after(11, [(10, gone), (11, archived)])
    assert [one.start_offset for one in after.slices.values()] == [30]
    assert noted.after(10, [(10, archived)]).slices[unknown.key].size_bytes == 300


def test_what_somebody_left_is_noted_by_cleanups_alone() -> None:
    noted = state_of(slice_of(0, 30), slice_of(30, 60))
    found = replace(slice_of(0, 60), kind=FOUND)
    state = state_of(found)
    archived = commit(hot(60, 90, 0), state, noted).note
    assert (archived.known, archived.gone) == ([], [])
    assert [one.kind for one in archived.added] == ["archive"]
    cleaned = commit(Change(registers={LogStart(0): 5}), state, noted).note
    assert cleaned.added == [found]
    assert set(cleaned.gone) == noted.slices.keys()
    assert set(noted.after(10, [(10, cleaned)]).slices) == {found.key}


def test_a_base_is_noted_first_and_now_and_then() -> None:
    assert commit(hot(0, 10, 0), State(0)).note.base is not None
    based = []
    state = State(0)
    for version in range(1, 120):
        note = commit(hot(10 * version, 10 * version + 10, 0), state).note
        based += [version] if note.base is not None else []
        state = state.after(version, [(version, note)])
    assert based == [1, 51, 101]


def test_whole_segments_go_by_partition_columns_and_the_newest_by_offsets() -> None:
    state = state_of(slice_of(0, 30), slice_of(30, 60, 30), slice_of(60, 90, 60))
    index, (first, second, newest) = state.index(), files_of(state)

    def where(*removes: SegmentFile) -> str:
        start = max(file.end_offset for file in removes)
        change = Change(removes=removes, registers={LogStart(0): start})
        return commit(change, state).where(index)

    assert where(first) == "(partition = 0 AND segment IN (0))"
    assert where(first, second) == "(partition = 0 AND segment IN (0, 30))"
    # An archiver may be adding to it.
    assert where(newest) == ("(partition = 0 AND segment IN (60) AND offset >= 60 AND offset < 90)")


def test_a_part_of_a_segment_is_rewritten_by_offsets() -> None:
    state = state_of(slice_of(0, 30), slice_of(30, 60), slice_of(60, 90, 60))
    first = files_of(state)[0]
    change = Change(
        adds=(Rewrite(TOPIC.partition(0), 0, (first,), OffsetSet.of([3])),),
        removes=(first,),
        registers={CleanedEnd(0): 30},
    )
    made = commit(change, state)
    assert made.note.kind == CLEANUP
    assert made.where(state.index()) == (
        "(partition = 0 AND segment IN (0) AND offset >= 0 AND offset < 30)"
    )


def test_files_are_merged_where_all_of_a_segment_is() -> None:
    state = state_of(slice_of(0, 30), slice_of(30, 60), slice_of(60, 90, 60), slice_of(90, 95, 60))
    index, files = state.index(), files_of(state)

    def merge(*sources: SegmentFile) -> NamedCommit:
        add = Rewrite(TOPIC.partition(0), sources[0].segment, sources)
        return commit(Change(adds=(add,), removes=sources, data_change=False), state)

    whole = merge(*files[:2])
    assert whole.where_merged(index) == "(partition = 0 AND segment IN (0))"
    assert not whole.removed  # no row moves
    (merged,) = whole.note.added
    assert (merged.records, merged.first, merged.last, merged.size_bytes) == (60, 0, 59, 600)
    assert merge(files[3]).where_merged(index) == ""

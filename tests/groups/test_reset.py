"""Where a group's offsets go, by Kafka's scenarios; and the file that says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import (
    InvalidArgumentError,
    NonEmptyGroupError,
    NoOffsetForPartitionError,
    UnknownTopicOrPartitionError,
)
from lakelog.groups.group_values import GroupDescription, GroupState, MemberDescription
from lakelog.groups.reset import (
    ByDuration,
    FromFile,
    PartitionFacts,
    Scenario,
    ShiftBy,
    ToCurrent,
    ToDatetime,
    ToEarliest,
    ToLatest,
    ToOffset,
    check_inactive,
    plan_reset,
)
from lakelog.groups.reset_csv import read_csv, write_csv
from lakelog.values.topic_partition import TopicPartition

TP = TopicPartition("t", 0)
NOW_MS = 1_700_000_000_000


def goes_to(scenario: Scenario, **facts: Any) -> tuple[int, bool]:
    """Where one partition goes, and whether a warning says something of it."""
    known = PartitionFacts(**{"log_start": 0, "log_end": 100, "committed": 100, **facts})
    (found,) = plan_reset(scenario, {TP: known})
    assert found.committed == known.committed
    return found.offset, found.warning is not None


@pytest.mark.parametrize(
    ("kafka", "scenario", "facts", "expected"),
    [
        ("--to-offset 50", ToOffset(50), {}, (50, False)),
        ("--by-duration PT1M", ByDuration(timedelta(minutes=1)), {"at_target": 0}, (0, False)),
        ("--by-duration PT0.1S", ByDuration(timedelta(seconds=0.1)), {}, (100, True)),
        (
            "--by-duration on an empty topic",
            ByDuration(timedelta(minutes=1)),
            {"log_end": 0, "committed": None},
            (0, True),
        ),
        ("--to-earliest", ToEarliest(), {}, (0, False)),
        ("--to-latest after 100 more", ToLatest(), {"log_end": 200}, (200, False)),
        ("--to-current after 100 more", ToCurrent(), {"log_end": 200}, (100, False)),
        ("--to-current without a commit", ToCurrent(), {"committed": None}, (100, False)),
        ("--shift-by -50", ShiftBy(-50), {}, (50, False)),
        ("--shift-by 50", ShiftBy(50), {"log_end": 200}, (150, False)),
        ("--shift-by below the start", ShiftBy(-150), {}, (0, True)),
        ("--shift-by beyond the end", ShiftBy(150), {}, (100, True)),
        ("--to-offset beyond the end", ToOffset(500), {}, (100, True)),
        ("--to-offset below the start", ToOffset(-1), {"log_start": 10}, (10, True)),
        ("--to-datetime before all", ToDatetime(0), {"at_target": 0}, (0, False)),
        ("--to-datetime after all", ToDatetime(NOW_MS), {}, (100, True)),
        ("kafka-python clamps to 10..100, low", ToOffset(5), {"log_start": 10}, (10, True)),
        ("kafka-python clamps to 10..100, high", ToOffset(150), {"log_start": 10}, (100, True)),
        ("--from-file", FromFile({TP: 2}), {}, (2, False)),
        ("--from-file beyond the end", FromFile({TP: 101}), {}, (100, True)),
        (
            "--to-current below the start",
            ToCurrent(),
            {"log_start": 100, "committed": 7},
            (100, True),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_partition_goes_where_kafka_moves_it(
    kafka: str, scenario: Scenario, facts: Mapping[str, int], expected: tuple[int, bool]
) -> None:
    assert goes_to(scenario, **facts) == expected


def test_a_file_that_names_a_partition_that_is_not_there_changes_nothing() -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="t-7"):
        plan_reset(FromFile({TP: 1, TopicPartition("t", 7): 5}), {TP: PartitionFacts(0, 9)})


def test_what_was_never_committed_cannot_be_shifted() -> None:
    facts = {TP: PartitionFacts(0, 9, 1), TopicPartition("t", 1): PartitionFacts(0, 9)}
    with pytest.raises(NoOffsetForPartitionError, match="t-1") as caught:
        plan_reset(ShiftBy(1), facts)
    assert caught.value.topic_partition == TopicPartition("t", 1)


def test_a_warning_says_what_was_asked_and_what_is_done() -> None:
    (found,) = plan_reset(ToOffset(500), {TP: PartitionFacts(0, 100)})
    assert found.warning == "500 of t-0 lies beyond the log end; it goes to 100"


@given(
    st.sampled_from([ToEarliest(), ToLatest(), ToCurrent()])
    | st.builds(ToOffset, st.integers(-5, 60))
    | st.builds(ShiftBy, st.integers(-60, 60))
    | st.builds(ToDatetime, st.integers(0, 10)),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 60),
    st.none() | st.integers(0, 60),
)
def test_wherever_it_goes_it_lies_within_the_log(
    scenario: Scenario, start: int, length: int, committed: int, at_target: int | None
) -> None:
    known = PartitionFacts(start, start + length, committed, at_target)
    (found,) = plan_reset(scenario, {TP: known})
    assert known.log_start <= found.offset <= known.log_end
    # Once moved, the same offset is where it is.
    (again,) = plan_reset(ToOffset(found.offset), {TP: known})
    assert (again.offset, again.warning) == (found.offset, None)


@pytest.mark.parametrize("state", GroupState)
def test_only_a_group_without_members_is_moved(state: GroupState) -> None:
    member = MemberDescription("ada-1", None, "ada", "10.0.0.7", 45_000, b"", b"")
    members = () if state in (GroupState.EMPTY, GroupState.DEAD) else (member,)
    group = GroupDescription("readers", state, members=members)
    if members:
        with pytest.raises(NonEmptyGroupError, match=r"ada on 10\.0\.0\.7") as caught:
            check_inactive(group)
        assert caught.value.members == ("ada-1",)
    else:
        check_inactive(group)


# -- the file ----------------------------------------------------------------------------------

topics = st.text("abz.-_09", min_size=1, max_size=8).filter(lambda name: name.strip("."))
offsets = st.dictionaries(
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)),
    st.integers(0, 2**53),
    min_size=1,
    max_size=5,
)
group_ids = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
)


@given(st.dictionaries(group_ids, offsets, min_size=1, max_size=4))
def test_a_file_says_what_was_written(groups: dict[str, dict[TopicPartition, int]]) -> None:
    found = read_csv(write_csv(groups))
    if len(groups) == 1:
        assert found == {None: next(iter(groups.values()))}
    else:
        assert found == groups


@pytest.mark.parametrize(
    "text", ["t,0,5", "t,0,5\r\n", "\ufefft,0,5\n", "\nt,0,5\n\n", " t , 0 , 5 \n", '"t",0,5\n']
)
def test_a_file_of_whatever_editor_is_read(text: str) -> None:
    assert read_csv(text) == {None: {TP: 5}}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("t,0,5\nt,1\n", 2, "2 columns; topic,partition,offset was expected"),
        ("t,0,5\ng,t,1,5\n", 2, "4 columns; topic,partition,offset was expected"),
        ("t,0\n", 1, "topic,partition,offset or group,topic,partition,offset was expected"),
        ("topic,partition,offset\nt,0,5\n", 1, "'partition' is not the number of a partition"),
        ("t,0,5\n\nt,one,5\n", 3, "'one' is not the number of a partition"),
        ("t,0,5\nt,1,-5\n", 2, "'-5' is not the number of an offset"),
        ("t,0,5\nt,1,5.5\n", 2, "'5.5' is not the number of an offset"),
        ("t,0,9999999999999999999\n", 1, "offsets stay below"),
        ("t,2147483648,5\n", 1, "2147483648 is not the number of a partition"),
        ("t,0,5\nt,0,6\n", 2, "a second time"),
        ("t/u,0,5\n", 1, "topic"),
        (",t,0,5\n", 1, "not the id of a group"),
        ('t,0,5\n"t,1,5\n', 2, "unexpected end of data"),
    ],
)
def test_a_file_with_an_error_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why) as caught:
        read_csv(text)
    assert caught.value.message.startswith(f"line {line} of the file of offsets")
    assert caught.value.value == line


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_a_file_without_lines_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no lines"):
        read_csv(text)

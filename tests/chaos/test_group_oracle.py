"""Histories of a group made by hand: one that may have been, and each anomaly put into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from .history import (
    Creation,
    FinalLog,
    GroupCommit,
    GroupRead,
    History,
    Kind,
    Partition,
    Seen,
    Span,
    TotalLoss,
    group_commits_of,
    group_reads_of,
)
from .oracle import judge

WHERE = Partition("id-1", 0)


def read(member: str, generation_id: int, *offsets: int, at_s: float) -> GroupRead:
    return GroupRead(member, generation_id, WHERE, [*offsets], [f"p.1.{n}" for n in offsets], at_s)


def commit(member: str, generation_id: int, offset: int, at_s: float) -> GroupCommit:
    return GroupCommit(member, generation_id, WHERE, offset, at_s - 0.1, at_s)


def history() -> History:
    """``a`` reads, commits, and is stopped; ``b`` takes over from there to the end."""
    records = [Seen(offset, f"p.1.{offset}") for offset in (0, 1, 2, 3, 50)]
    return History(
        creations=[Creation("plain", WHERE.topic_id, Kind.PLAIN, 0.0)],
        group_reads=[
            read("a", 1, 0, 1, at_s=1.0),
            read("a", 1, 2, at_s=3.0),
            read("b", 2, 2, 3, at_s=4.0),
            read("a", 1, 3, at_s=4.5),  # it does not know yet
            read("b", 2, 50, at_s=5.0),
        ],
        group_commits=[commit("a", 1, 2, 2.0), commit("b", 2, 4, 4.2), commit("b", 2, 51, 6.0)],
        group_end={WHERE: 51},
        finals=[FinalLog("plain", WHERE, 0, 51, [Span(4, 50)], {"log.read": records})],
        restarts=1,
    )


GROUP_ANOMALIES = {
    "two owners",
    "order in a group",
    "skipped by a group",
    "lost commit",
    "late commit",
    "group stuck",
}


def names(history: History) -> set[str]:
    """What is wrong with the group; nobody sent these records."""
    return {anomaly.name for anomaly in judge(history)} & GROUP_ANOMALIES


def test_a_history_that_may_have_been_a_group_s_is_none() -> None:
    assert names(history()) == set()


def _two_owners(history: History) -> None:
    history.group_reads.append(read("c", 2, 51, at_s=7.0))


def _order(history: History) -> None:
    history.group_reads.append(read("b", 2, 3, at_s=7.0))


def _skipped(history: History) -> None:
    history.group_commits.append(commit("b", 2, 51, 4.9))


def _never_handled(history: History) -> None:
    history.group_reads.pop()


def _lost_commit(history: History) -> None:
    history.group_reads[2] = read("b", 2, 1, 2, 3, at_s=4.0)


def _late_commit(history: History) -> None:
    history.group_commits.append(commit("a", 1, 4, 7.0))


def _stuck(history: History) -> None:
    history.group_end = {WHERE: 4}


def _nothing_committed(history: History) -> None:
    history.group_end = {}


@pytest.mark.parametrize(
    ("spoil", "anomaly"),
    [
        (_two_owners, "two owners"),
        (_order, "order in a group"),
        (_skipped, "skipped by a group"),
        (_never_handled, "skipped by a group"),
        (_lost_commit, "lost commit"),
        (_late_commit, "late commit"),
        (_stuck, "group stuck"),
        (_nothing_committed, "group stuck"),
    ],
)
def test_each_anomaly_is_found(spoil: Callable[[History], None], anomaly: str) -> None:
    found = history()
    spoil(found)
    assert names(found) == {anomaly}


def test_a_commit_may_go_back_with_a_lost_tail() -> None:
    found = history()
    _lost_commit(found)
    found.losses = [Span(1.95, 2.5)]
    assert names(found) == set()


def test_a_commit_counts_for_who_was_given_the_partition_after_it() -> None:
    found = history()
    _lost_commit(found)
    found.group_reads[2] = replace(found.group_reads[2], since_s=1.9)  # the commit is of 2.0
    assert names(found) == set()
    found.group_reads[2] = replace(found.group_reads[2], since_s=2.1)
    assert names(found) == {"lost commit"}


def test_after_all_of_redis_was_lost_generations_are_counted_anew() -> None:
    found = history()
    found.total_losses = [TotalLoss(Span(4.6, 4.9), {})]
    found.group_reads[-1] = replace(found.group_reads[-1], generation_id=1)
    found.group_reads.append(read("b", 2, 2, 3, at_s=5.5))  # the second generation again
    assert names(found) == set()


def test_what_was_handled_just_before_redis_was_lost_says_nothing_of_what_came_after() -> None:
    """The loss is some time within its span, which begins with a look at what may be lost."""
    found = history()
    found.total_losses = [TotalLoss(Span(4.6, 4.9), {})]
    at_s = (4.7, 5.5)
    found.group_reads += [read("c", 7, 2, 3, at_s=at_s[0]), read("c", 7, 0, 1, at_s=at_s[1])]
    assert names(found) == set()
    found.group_reads.append(read("c", 7, 1, at_s=5.6))
    assert names(found) == {"order in a group"}


def test_an_unreadable_partition_and_a_round_without_a_group_are_not_judged() -> None:
    found = history()
    _stuck(found)
    found.unreadable = {WHERE}
    assert names(found) == set()
    found = history()
    found.group_end = None
    assert names(found) == set()


def test_journals_tell_what_was_handled_and_committed() -> None:
    lines = [
        ["joins", 0.5, "a"],
        ["handled", 1.0, "a", 1, "id-1", 0, [0, 1], ["p.1.0", "p.1.1"]],
        ["error", 1.5, "a", "an error"],
        ["committed", 2.0, "a", 1, 1.9, [["id-1", 0, 2]]],
    ]
    assert group_reads_of(lines) == [read("a", 1, 0, 1, at_s=1.0)]
    assert group_commits_of(lines) == [GroupCommit("a", 1, WHERE, 2, 1.9, 2.0)]

"""A run over topics tells the same, however many of them are worked on at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.archive.report import ArchiveReport
from lakelog.archive.topics_run import TopicsRun
from lakelog.errors import (
    ArchiveFailedError,
    CorruptRecordError,
    HotTierUnavailableError,
    LakelogError,
)
from lakelog.values.config import TopicConfig
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import OffsetRange

LIVENESS_S = 60.0

TOPICS = [Topic(f"t{number}", uuid4(), 1, TopicConfig()) for number in range(6)]

AWAY = HotTierUnavailableError("away", sent=False)
DAMAGED = CorruptRecordError("damaged")

Outcome = tuple[ArchiveReport, Sequence[LakelogError]]


def archived(topic: Topic, *errors: LakelogError) -> Outcome:
    return ArchiveReport(topic.name, trimmed={0: OffsetRange(0, 1)}), errors


def told(
    topics: Sequence[Topic],
    attempt: Callable[[Topic], Outcome],
    at_once: int,
    patience_s: float = 0,
) -> tuple[list[ArchiveReport], list[tuple[str, list[LakelogError]]]]:
    """The reports, and the errors, in their order."""
    run = TopicsRun(attempt, at_once=at_once)
    run.archive(topics, patience_s)
    try:
        return run.checked(), []
    except ArchiveFailedError as failed:
        return list(failed.reports), [(name, list(found)) for name, found in failed.errors.items()]


OUTCOMES: dict[str, Callable[[Topic], Outcome]] = {
    "archived": archived,
    "nothing": lambda topic: (ArchiveReport(topic.name), ()),
    "in part": lambda topic: archived(topic, DAMAGED),
    "twice": lambda topic: archived(topic, DAMAGED, AWAY),
    "not at all": lambda topic: (ArchiveReport(topic.name), [AWAY]),
}


@given(
    named=st.lists(st.sampled_from(TOPICS)),
    ends=st.lists(st.sampled_from([*OUTCOMES, "raises"]), min_size=6, max_size=6),
)
def test_as_many_at_once_as_may_be_tell_what_one_by_one_does(named, ends):
    def attempt(topic: Topic) -> Outcome:
        end = ends[TOPICS.index(topic)]
        if end == "raises":
            raise AWAY
        return OUTCOMES[end](topic)

    one_by_one = told(named, attempt, 1)
    assert told(named, attempt, 3) == one_by_one
    names = [topic.name for topic in named]
    for found in ([report.topic for report in one_by_one[0]], [name for name, _ in one_by_one[1]]):
        assert found == sorted(found, key=names.index)


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_may_be_tried_again_is_after_all_others_and_keeps_its_place(at_once):
    tries: list[str] = []

    def attempt(topic: Topic) -> Outcome:
        tries.append(topic.name)
        if topic.name in ("t1", "t4") and tries.count(topic.name) == 1:
            return archived(topic, AWAY)
        return archived(topic, *([DAMAGED] if topic.name in ("t2", "t4") else []))

    reports, errors = told(TOPICS, attempt, at_once, patience_s=LIVENESS_S)
    assert sorted(tries[:6]) == [topic.name for topic in TOPICS]
    assert sorted(tries[6:]) == ["t1", "t4"]
    assert [report.topic for report in reports] == [topic.name for topic in TOPICS]
    assert errors == [("t2", [DAMAGED]), ("t4", [DAMAGED])]


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_is_no_error_of_lakelog_ends_the_run(at_once):
    def attempt(topic: Topic) -> Outcome:
        raise ZeroDivisionError(topic.name)

    with pytest.raises(ZeroDivisionError, match="t0"):
        TopicsRun(attempt, at_once=at_once).archive(TOPICS, LIVENESS_S)

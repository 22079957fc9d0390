"""The machine can fail for whoever writes and reads: defects of theirs are caught.

Each by the stories of the one who has the defect.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from mutants import Mutant, patched, script
from stories import run, written_by
from support.log_rules import LogRules
from support.machine import log_machine

from lakelog.errors import HotTierUnavailableError
from lakelog.ingest import delivery, sender
from lakelog.ingest.answers import Verdict, verdict
from lakelog.read import cursor
from lakelog.spark import datasource, ranges, sink_append
from lakelog.testing.model import Difference
from lakelog.values import producer_calls
from lakelog.values.producer_calls import ProducerCall
from lakelog.values.record import RecordMetadata
from lakelog.values.topic_partition import OffsetRange


def _resent_as_new(answer: Any, **known: Any) -> Verdict:
    return (
        Verdict.RENUMBER
        if isinstance(answer, HotTierUnavailableError)
        else verdict(answer, **known)
    )


_metadata_of = delivery.Delivery.metadata_of


def _metadata_of_the_first(self: delivery.Delivery, index: int) -> RecordMetadata:
    return replace(_metadata_of(self, index), offset=self.base_offset)


_handed_out = cursor.Cursor._handed_out


def _one_more_handed_out(self: Any, records: int) -> None:
    one_more = min(records + 1, len(self._ahead))
    self._counted = max(self._counted, one_more)  # as far as it goes, and no further
    _handed_out(self, one_more)


_cut_call = producer_calls._cut


def _cut_unless_begun(call: ProducerCall, end: int) -> ProducerCall:
    return call if call.base_offset < end else _cut_call(call, end)


_cut = ranges._cut


def _cut_with_its_end(one: ranges.SizedRange, parts: int) -> Iterator[ranges.SizedRange]:
    for part in _cut(one, parts):
        yield replace(part, end_offset=min(part.end_offset + 1, one.end_offset))


_input_ranges = datasource.LakelogStreamReader._input_ranges


def _ranges_begin_late(self: Any, ranges: Any, *more: Any) -> list[datasource.InputTask]:
    late = {
        topic: {number: OffsetRange(start + 1, end) for number, (start, end) in of_topic.items()}
        for topic, of_topic in ranges.items()
    }
    return _input_ranges(self, late, *more)


SEEDS = 10

#: By who has the defect: who writes in the stories that show it.
WRITER = {"producer": "producer", "sink": "sink", "reader": "calls"}
MUTANTS = (
    (
        "producer",
        Mutant(
            "what may be written sent as new",
            "a record sent once, also when an answer is lost, is in the log once",
            patched(sender, "verdict", _resent_as_new),
        ),
    ),
    (
        "producer",
        Mutant(
            "a call's first offset for all its records",
            "a producer is told where each record went",
            patched(delivery.Delivery, "metadata_of", _metadata_of_the_first),
        ),
    ),
    (
        "sink",
        Mutant(
            "a new producer for each attempt of a task",
            "the rows of a task are appended once, however often it is repeated",
            patched(
                sink_append.TaskIdentity, "producer_id", property(lambda _: uuid.uuid4().int >> 66)
            ),
        ),
    ),
    (
        "sink",
        Mutant(
            "archived work forgotten with Redis",
            "what is archived of a task is not appended again, also after a loss of Redis",
            script("recover", {"ARGV[i]) == 0 or base >= log_end": "ARGV[i]) == nil"}),
        ),
    ),
    (
        "sink",
        Mutant(
            "a call that is archived in part taken as a whole",
            "a repeat of work appends the rows that are not archived, or is refused",
            patched(producer_calls, "_cut", _cut_unless_begun),
        ),
    ),
    (
        "reader",
        Mutant(
            "a poll that goes on behind what it left",
            "a consumer hands out each record",
            patched(cursor.Cursor, "_handed_out", _one_more_handed_out),
        ),
    ),
    (
        "reader",
        Mutant(
            "tasks that overlap",
            "the tasks of a batch read each record once",
            patched(ranges, "_cut", _cut_with_its_end),
        ),
    ),
    (
        "reader",
        Mutant(
            "micro-batches that begin late",
            "a stream goes on where the micro-batch before it ended",
            patched(datasource.LakelogStreamReader, "_input_ranges", _ranges_begin_late),
        ),
    ),
)


#: Caught when asked for; the others, within seconds.
SLOW = {"a call that is archived in part taken as a whole"}


@pytest.mark.parametrize(
    ("who", "mutant"),
    [
        pytest.param(who, one, id=one.name, marks=[pytest.mark.slow] if one.name in SLOW else [])
        for who, one in MUTANTS
    ],
)
def test_the_rules_of_a_log_catch_the_mutant(who: str, mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, LogRules) as machine,
        pytest.raises(Difference),
    ):
        run(written_by(WRITER[who], machine), seeds=SEEDS, steps=20)


@pytest.mark.slow
@pytest.mark.parametrize("who", WRITER)
def test_without_a_mutant_the_same_stories_pass(who: str, tmp_path: Path) -> None:
    with log_machine(tmp_path, LogRules) as machine:
        run(written_by(WRITER[who], machine), seeds=SEEDS, steps=20)

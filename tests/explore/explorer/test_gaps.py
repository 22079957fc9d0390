"""Pages of logs with holes of every origin, against the plain list of what the log holds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from gapped_story import Story, beginnings, happenings
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.explore.explorer.answer import answer
from lakelog.explore.explorer.view import Ask, Before, OpenedTopic, Shown
from lakelog.read.found import SearchLimit
from lakelog.read.where import Always, Where, parse
from lakelog.values.config import EntryFormat
from lakelog.values.offsets import AtOffset, Latest
from lakelog.values.record import Record, to_records


class Pages:
    """The explorer's answers about one partition of a story, each compared with its list."""

    def __init__(self, story: Story, partition: int) -> None:
        self.log = story.bench.log
        self.partition = partition
        self.story = story
        self.held = story.held(partition)
        self.offsets = self.log.offsets([partition])[partition]
        self.opened = OpenedTopic(self.log)

    def ask(self, where: Any, records: int, match: Where | None = None, limit: int = 10**6) -> Ask:
        name = self.log.topic.name
        return Ask(name, self.partition, where, match or Always(), records, SearchLimit(limit))

    def shown(self, ask: Ask) -> Shown:
        shown = answer(self.opened, ask)
        again = eval(shown.view.expression, {"log": self.log}).to_arrow()
        assert again.equals(shown.records), shown.view.expression
        assert list(shown.tiers) == [self.tier(record.offset) for record in self.records(shown)]
        return shown

    def records(self, shown: Shown) -> list[Record]:
        return to_records(self.log.topic.partition(self.partition), shown.records)

    def tier(self, offset: int) -> str:
        local = self.offsets.local_log_start
        hot = offset >= local and offset in self.story.in_hot[self.partition]
        cold = offset in self.story.in_cold[self.partition]
        return {(True, True): "both", (True, False): "hot", (False, True): "cold"}[hot, cold]

    def check_walks(self, records: int) -> None:
        """All of it forward from the start, and all of it back from the end."""
        shown = self.shown(self.ask(AtOffset(self.offsets.log_start), records))
        walked = self.records(shown)
        while shown.view.end_offset < (self.held[-1].offset + 1 if self.held else 0):
            shown = self.shown(shown.ask_forward)
            walked += self.records(shown)
        assert walked == self.held

        shown = self.shown(self.ask(Latest(), records))
        walked = self.records(shown)
        while shown.records.num_rows and walked[0] != self.held[0]:
            shown = self.shown(shown.ask_back)
            walked = self.records(shown) + walked
        assert walked == self.held

    def check_place(self, offset: int, records: int) -> None:
        after = [record for record in self.held if record.offset >= offset]
        before = [record for record in self.held if record.offset < offset]
        if offset < self.offsets.log_end:
            assert self.records(self.shown(self.ask(AtOffset(offset), records))) == after[:records]
        if offset > self.offsets.log_start:
            found = self.records(self.shown(self.ask(Before(offset), records)))
            assert found == before[-records:]

    def check_scans(self, offset: int, records: int, match: Where, limit: int) -> None:
        """Page after page, whatever each may read, nothing is left out and nothing comes twice."""
        wanted = [r for r in self.held if b"3" in (r.value or b"") or b"3" in (r.key or b"")]
        for_forward = [record for record in wanted if record.offset >= offset]
        for_back = [record for record in wanted if record.offset < offset]
        if offset < self.offsets.log_end:
            shown = self.shown(self.ask(AtOffset(offset), records, match, limit))
            found = self.records(shown)
            while shown.view.end_offset < self.offsets.log_end:
                shown = self.shown(shown.ask_forward)
                found += self.records(shown)
            assert found == for_forward
        if offset > self.offsets.log_start:
            shown = self.shown(self.ask(Before(offset), records, match, limit))
            found = self.records(shown)
            while shown.view.start_offset > self.offsets.log_start:
                shown = self.shown(shown.ask_back)
                found = self.records(shown) + found
            assert found == for_back

    def places(self, chance: random.Random, count: int) -> list[int]:
        edges = [
            self.offsets.log_start,
            self.offsets.log_end,
            self.offsets.local_log_start,
            *(edge for gap in self.story.lost[self.partition] for edge in gap),
            *self.story.records[self.partition],
        ]
        near = sorted({edge + by for edge in edges for by in (-1, 0, 1)})
        inside = [at for at in near if self.offsets.log_start <= at <= self.offsets.log_end]
        return chance.choices(inside, k=count)


@given(
    beginning=beginnings,
    steps=st.lists(happenings, max_size=8),
    records=st.integers(1, 9),
    limit=st.integers(1, 30),
    seed=st.integers(0, 999),
)
@settings(max_examples=4)
def test_pages_agree_with_a_list(make_bench, beginning, steps, records, limit, seed):
    chance = random.Random(seed)
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    for partition in range(2):
        pages = Pages(story, partition)
        pages.check_walks(records)
        for offset in pages.places(chance, 4):
            pages.check_place(offset, records)
            pages.check_scans(offset, records, parse("3"), limit)


@pytest.fixture
def story(make_bench):
    """[0, 40), all archived in five segments or so, nothing of it hot."""
    story = Story(make_bench())
    story.append(0, list(range(100, 140)), EntryFormat.FIELDS)
    story.archive(0, 8)
    story.trim(0, 8)
    return story


def test_the_page_before_a_wide_gap_is_found_without_reading_through_it(story, pass_ms):
    pass_ms(story.bench.hot, 100)
    story.lose_tail(0, [])
    story.append(0, [200, 201], EntryFormat.FIELDS)
    pages = Pages(story, 0)
    assert pages.offsets.log_end > 1 << 20

    shown = pages.shown(pages.ask(Latest(), 5))
    assert [record.offset for record in pages.records(shown)][:3] == [37, 38, 39]
    assert any("were skipped after an unclean stop" in note for note in shown.notes)


def test_a_page_that_begins_in_a_gap_says_why(story):
    story.compact(0, lambda offsets: [offset for offset in offsets if offset % 10], False, False)
    pages = Pages(story, 0)

    shown = pages.shown(pages.ask(AtOffset(1), 2))
    assert [record.offset for record in pages.records(shown)] == [10, 20]
    assert shown.notes == ("offsets [1, 10) were removed by compaction; the next record is shown",)


def test_a_page_of_skipped_offsets_alone_says_so_and_of_no_others(story):
    story.lose_tail(0, [])
    pages = Pages(story, 0)
    (gap,) = story.lost[0]
    for offset in (gap.start, gap.start + 7):
        shown = pages.shown(pages.ask(AtOffset(offset), 2))
        assert pages.records(shown) == []
        assert shown.notes[0] == (
            f"no record is left in [{offset:,}, {gap.end:,}): they were skipped after an unclean "
            "stop of Redis"
        )


def test_what_compaction_took_from_cold_is_in_hot_alone(make_bench):
    story = Story(make_bench())
    story.append(0, list(range(40)), EntryFormat.FIELDS)
    story.archive(0, 8)
    story.compact(0, lambda offsets: [offset for offset in offsets if offset % 2], False, False)
    pages = Pages(story, 0)

    shown = pages.shown(pages.ask(AtOffset(0), 4))
    assert shown.tiers == ("both", "hot", "both", "hot")

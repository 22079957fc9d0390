"""The real log and the model, side by side, whatever happens in whatever order.

A longer run, 200 stories of 50 steps in some four minutes: ``pytest -m slow tests/model``; a whole
night: with ``HYPOTHESIS_PROFILE=nightly`` before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from support.cleanup_rules import STEPS, Life
from support.log_rules import LogRules
from support.machine import log_machine
from support.shared_root_rules import SharedRootRules

from lakelog.testing.strategies import Batch
from lakelog.values.config import Compression, EntryFormat


def test_log_and_model_never_differ(tmp_path: Path) -> None:
    with log_machine(tmp_path) as machine:
        run_state_machine_as_test(
            machine, settings=settings(max_examples=6, stateful_step_count=30)
        )


@pytest.mark.slow
def test_log_and_model_never_differ_in_a_long_run(tmp_path: Path) -> None:
    with log_machine(tmp_path) as machine:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=max(200, settings().max_examples), stateful_step_count=50
            ),
        )


ROWS = ((1_700_000_000_000, b"k", b"v", ()),)
BATCH = Batch(ROWS, (EntryFormat.FIELDS,), Compression.NONE, flatten=False, fresh=False)


@contextmanager
def told(tmp_path: Path, rules: type) -> Iterator[Any]:
    """A story that a test tells, by the rules of a machine."""
    with log_machine(tmp_path, rules) as machine:
        story = machine()
        try:
            yield story
        finally:
            story.teardown()


class Chosen:
    """Draws what the test chose, by label."""

    def __init__(self, **chosen: Any) -> None:
        self._chosen = chosen

    def draw(self, _: Any, label: str) -> Any:
        return self._chosen[label]


def test_a_plan_that_was_held_up_over_a_recovery_does_not_land(tmp_path: Path) -> None:
    with told(tmp_path, LogRules) as story:
        story.create_topic(Chosen(writer="calls"), {}, 2**26)
        story._produce(0, 1, [BATCH, BATCH])
        story.hold_plan(Chosen(partitions={0}, offset=1))
        story._lose_tail(story.server.append_only_size(), reopen=True)
        story._produce(0, 1, [BATCH])
        story.apply_held_plan()
        assert story.table.snapshot().archived_end(0) == 0


def test_a_call_may_be_known_whose_records_went_with_the_table(tmp_path: Path) -> None:
    kept = {"retention.ms": -1, "local.retention.ms": -1}
    with told(tmp_path, LogRules) as story:
        story.create_topic(Chosen(writer="sink"), kept, 100)
        story._produce(1, 1, [BATCH])
        before = story.server.append_only_size()
        steps = [(2, "archive and lose the tail")]
        story.lose_amid_a_task(1, 0, steps, Chosen(size=before))
        story.switch_tiering_off_and_on(Chosen(partition=0), True, (BATCH, BATCH))
        now = story.server.append_only_size()
        story.lose_amid_a_task(1, 0, [(1, "lose the tail")], Chosen(size=now))
        assert story.models[1].given_up


def test_who_begins_anew_beside_what_redis_lost_is_told_of_both(tmp_path: Path) -> None:
    with told(tmp_path, SharedRootRules) as story:
        story.create_topic(Chosen(writer="calls"), {}, 2**26)
        story._produce(0, 1, [BATCH])
        story.a_neighbour_writes(count=2, anew=False)
        with story.server.client() as client:
            client.delete(*client.keys("neighbour*"), *client.keys("{neighbour*"))
        story.a_neighbour_writes(count=1, anew=True)
        story.a_neighbour_writes(count=1, anew=True)


@pytest.mark.parametrize("purged", [False, True], ids=["kept", "purged"])
def test_who_finds_a_topic_that_its_table_calls_deleted_deletes_it_again(
    tmp_path: Path, purged: bool
) -> None:
    """Redis came back without the deletion."""
    with told(tmp_path, SharedRootRules) as story:
        story.create_topic(Chosen(writer="calls"), {}, 2**26)
        story._produce(0, 1, [BATCH])
        story.a_neighbour_writes(count=2, anew=False)
        before = story.server.append_only_size()
        story.a_neighbour_deletes(purged=purged, alone=False)
        story._lose_tail(before)
        story.a_neighbour_writes(count=1, anew=False)
        story.a_neighbour_writes(count=1, anew=True)


def test_a_copy_has_not_what_compaction_removed_while_redis_has_it(tmp_path: Path) -> None:
    row = (1_700_000_000_000, b"k", b"v", ())
    two = Batch((row, row), (EntryFormat.FIELDS,), Compression.NONE, flatten=False, fresh=True)
    one = Batch((row,), (EntryFormat.FIELDS,), Compression.NONE, flatten=False, fresh=True)
    compacted = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "segment.ms": 1000,
        "retention.ms": -1,
        "local.retention.ms": -1,
    }
    with log_machine(tmp_path) as machine:
        story = machine()
        try:
            story.create_topic(Chosen(writer="calls"), compacted, 100)
            story._live(Life(0, [two, one], 2_000, []))
            story.clean_up(STEPS, with_hot=False, trims=False)
            assert story.models[0].removed
            assert len(story.models[0].read()) == 3
            story.a_copy_comes_and_goes(as_file=False, partition=0, value=b"")
        finally:
            story.teardown()

"""Cleanup of a log, and foreign commits to its table, as rules of the state machine.

Retention, compaction, optimize and vacuum: crashed and raced at each failpoint, held up, under a
clock that jumps, beside foreign OPTIMIZE and VACUUM. `cleaning` works out the outcome of each step
from the segments that were there, and the rows of the Delta table must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from lakelog.base import failpoints
from lakelog.cleanup import STEPS
from lakelog.cleanup.cleanup import Cleanup
from lakelog.cleanup.compaction import compact
from lakelog.cleanup.optimize import optimize_change, plan_optimize
from lakelog.cleanup.plan import Cleanable, cleanables
from lakelog.cleanup.report import CleanupReport
from lakelog.cleanup.retention import plan_retention, retention_change
from lakelog.cold.change import Change
from lakelog.cold.registers import LogStart
from lakelog.cold.segment import is_ours
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import MissingExtraError, MissingFileError, OffsetOutOfRangeError
from lakelog.testing import strategies
from lakelog.testing.cleaning import ColdSegment, Dirty, dirty, eligible, hot_only_bytes, retained
from lakelog.testing.model import ModelLog, require, require_same
from lakelog.testing.strategies import Batch
from lakelog.values.config import HOUR_MS, MIB
from lakelog.values.offsets import HotSegments
from lakelog.values.record import Record, to_records

from .harness import PARTITIONS, Death, LogHarness, any_records, partitions

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

#: Failpoints that a cleanup run passes.
FAILPOINTS = [name for name in failpoints.NAMES if name.startswith(("cleanup.", "cold."))]

Layout = list[list[ColdSegment]]
"""The segments of each partition, as last seen."""


class Life(Struct, frozen=True):
    """Writes to a partition, most of which begin a new segment; archived but for the last ones."""

    partition: int
    updates: list[Batch]
    every_ms: int
    unarchived: list[Batch]


_lives = st.builds(
    Life,
    partitions,
    strategies.updates(),
    st.sampled_from([2_000, 10_000, HOUR_MS]),
    st.just([]) | st.just([]) | strategies.updates(),
)

_jumps = strategies.clock_jumps()
_cleanings = st.sampled_from(["", "cold", "hot", "hot shuffled"])


class Outcome(Struct, frozen=True):
    """Where one partition's cleanup may lead."""

    log_starts: tuple[int, int]  # lowest, highest
    dropped: frozenset[int] = frozenset()  # base offsets
    cleaned: Dirty | None = None
    optional: bool = False  # whether the cleaning may be left out


def _any_archived(machine: CleanupRules) -> bool:
    return any(model.archived_end for model in machine.models)


class CleanupRules(LogHarness):
    """Adds cleanup, foreign commits and time to what happens to a log."""

    MEANWHILE: ClassVar[tuple[str, ...]] = (
        *LogHarness.MEANWHILE,
        "clean",
        "vacuum",
        "optimize",
        "shuffle",
    )

    def __init__(self) -> None:
        super().__init__()
        self.strays: dict[Path, set[Path]] = {}  # files that a dead cleaner left, and their sources

    @precondition(any_records)
    @rule(by_ms=_jumps)
    def turn_clock(self, by_ms: int) -> None:
        self._turn_clock(by_ms)

    @rule(seasons=st.lists(st.tuples(_lives, _jumps, _cleanings), max_size=3))
    def live_on(self, seasons: list[tuple[Life, int, str]]) -> None:
        """Keys are written again and again, time passes, and a cleanup usually follows."""
        for life, by_ms, cleaning in seasons:
            self._live(life)
            self._turn_clock(by_ms)
            if "shuffled" in cleaning:
                self._delta_table().optimize.z_order(["key"])
            if cleaning:
                self._clean_up(STEPS, with_hot="cold" not in cleaning)
                self._trim()

    # -- cleanup runs ------------------------------------------------------------------------------

    @precondition(_any_archived)
    @rule(
        steps=st.sampled_from([STEPS, STEPS, STEPS[:1], STEPS[1:2], STEPS[2:3], STEPS[1:]]),
        with_hot=st.booleans(),
        trims=st.booleans(),
    )
    def clean_up(self, steps: tuple[str, ...], with_hot: bool, trims: bool) -> None:
        """Some or all of the steps; doing the same again changes nothing."""
        report = self._clean_up(steps, with_hot=with_hot)
        self._check_optimized(steps)
        if steps == STEPS:
            self._check_leftovers()
        if len(steps) == 1:
            again = self._cleanup(with_hot=with_hot).run(steps)
            require(not again, f"{report} and then again {again}")
        if trims:
            self._trim()

    @rule(life=_lives, failpoint=st.sampled_from(FAILPOINTS), with_hot=st.booleans())
    def crash_cleaner(self, life: Life, failpoint: str, with_hot: bool) -> None:
        """The cleaner dies there: what it committed stays, the rest never happened."""
        self._live(life)

        def die() -> None:
            raise Death

        layout = self._look_cold()
        outcomes = self._outcomes(layout, STEPS, with_hot=with_hot)
        with failpoints.armed(failpoint, die):
            try:
                self._cleanup(with_hot=with_hot).run()
            except Death:
                self._open()
        self._settle_cleaned(layout, [outcomes])
        self._note_strays()

    @rule(
        life=_lives,
        failpoint=st.sampled_from(FAILPOINTS),
        with_hot=st.booleans(),
        data=st.data(),
    )
    def race_cleaners(
        self, life: Life, failpoint: str, with_hot: bool, data: st.DataObject
    ) -> None:
        """While a cleaner is there, another cleaner, an archiver or a foreign OPTIMIZE runs."""
        self._live(life)
        meanwhile = self._draw_meanwhile(data)
        interfered: list[BaseException | None] = []
        layout = self._look_cold()
        outcomes = [self._outcomes(layout, STEPS, with_hot=with_hot)]

        def interfere() -> None:
            nonlocal layout
            if interfered:
                return
            interfered.append(None)
            try:
                layout = self._settle_cleaned(layout, outcomes)
                outcomes.append(self._outcomes(layout, STEPS, with_hot=with_hot))
                meanwhile()
                layout = self._look_cold()
                outcomes.append(self._outcomes(layout, STEPS, with_hot=with_hot))
                # Retention may have planned before: then what came meanwhile is compacted at once.
                outcomes.append(self._outcomes(layout, STEPS[1:], with_hot=with_hot))
            except (
                BaseException
            ) as error:  # kept from the cleaner, which may take it for the store's
                interfered[0] = error

        with failpoints.armed(failpoint, interfere):
            report = self._cleanup(with_hot=with_hot).run()
        if interfered and interfered[0] is not None:
            raise interfered[0]
        require(not report.failures, f"beside others cleanup failed: {report}")
        self._settle_cleaned(layout, outcomes)

    @precondition(_any_archived)
    @rule(partition=partitions, data=st.data(), max_bytes=st.sampled_from([1, 500, 8 * MIB]))
    def read_across_cleanup(self, partition: int, data: st.DataObject, max_bytes: int) -> None:
        """A reader gets what stays, in order, whatever is removed while it reads."""
        model = self.models[partition]
        start = self._draw_offset(data, partition)
        there = model.read(start)
        steps = self.log.fetches(partition, start, max_bytes=max_bytes)
        found: list[Record] = []
        position = start
        for _ in range(data.draw(st.integers(0, 3), "steps before")):
            step = next(steps, None)
            if step is None:
                break
            found += to_records(model.topic_partition, step.records)
            position = step.next_offset
        if data.draw(st.booleans(), "archived"):
            self._archive(self.archiver, None)
        self._clean_up(STEPS, with_hot=True)
        self._trim()
        if data.draw(st.booleans(), "vacuumed by a stranger"):
            self._vacuum_as_stranger()
        ended = True
        try:
            for step in steps:
                found += to_records(model.topic_partition, step.records)
                position = step.next_offset
        except OffsetOutOfRangeError:
            require(position < model.log_start, f"offset {position} was refused: {model.log_start}")
            ended = False
        known = {record.offset: record for record in there}
        require_same(found, [known[r.offset] for r in found if r.offset in known])
        offsets = [record.offset for record in found]
        require(offsets == sorted(set(offsets)), f"records came twice or out of order: {offsets}")
        missed = {record.offset for record in model.read(start) if ended} - set(offsets)
        require(not missed, f"a reader from {start} on missed {sorted(missed)[:5]}")

    # -- held up -----------------------------------------------------------------------------------

    @rule(
        life=_lives,
        step=st.sampled_from(["retain", "compact", "optimize"]),
        with_hot=st.booleans(),
        data=st.data(),
    )
    def hold_cleaner_up(self, life: Life, step: str, with_hot: bool, data: st.DataObject) -> None:
        """A cleaner plans, and is then held up while others change the log."""
        self._live(life)
        layout, now_ms = self._look_cold(), self.clock.now_ms()
        cold = self.table.snapshot()
        plans = plan_retention(self.topic, cold, now_ms, self._hot() if with_hot else None)
        chosen = [one for one in cleanables(self.topic, cold, now_ms) if one.eligible]
        optimize = optimize_change(plan_optimize(self.topic, cold))
        for _ in range(data.draw(st.integers(0, 2), "others")):
            self._draw_meanwhile(data)()
        if step == "compact":
            self._compact_late(layout, cold, chosen, now_ms)
        else:
            retain = retention_change([one for one in plans if one.dropped])
            self._apply_late(optimize if step == "optimize" else retain, cold)
        self._look_cold()

    def _apply_late(self, change: Change, planned_on: ColdSnapshot) -> None:
        """Partitions that no longer stand must not land, and the others must."""
        now = self.table.snapshot()
        directory = self._table_directory()
        active = {str(path.relative_to(directory)) for path, *_ in self._active_files()}
        standing = {
            partition
            for partition in change.partitions
            if {file.path for file in change.removes if file.partition == partition} <= active
            and all(
                now.registers.get(register, 0) == planned_on.registers.get(register, 0)
                for register in change.registers
                if register.partition == partition
            )
        }
        applied = self._new_table().apply(change, planned_on)
        require(
            applied.superseded == change.partitions - standing,
            f"of a late change all but {set(applied.superseded)} landed, not {standing}",
        )
        for partition in standing:
            self.models[partition].raise_log_start(change.registers.get(LogStart(partition), 0))

    def _compact_late(
        self, layout: Layout, cold: ColdSnapshot, chosen: Sequence[Cleanable], now_ms: int
    ) -> None:
        before = self.table.snapshot()
        done = compact(self.topic, self._new_table(), cold, chosen, now_ms)
        for error in done.failed.values():
            path = self._table_directory() / str(error.fields["path"])
            gone = isinstance(error, MissingFileError) and not path.exists()
            require(gone, f"a late compaction failed: {error}")
        for one in done.done:
            partition = one.topic_partition.partition
            model = self.models[partition]
            untouched = before.cleaned_end(partition) == cold.cleaned_end(partition)
            require(untouched, f"{one.topic_partition} was cleaned twice from one plan")
            log_start = cold.log_start(partition)
            segments, config = layout[partition], self.topic.config
            found = dirty(segments, config, log_start, model.cleaned_end, now_ms)
            require(
                found is not None and found.cleaned_end == one.cleaned_end,
                f"{one.topic_partition} was cleaned up to {one.cleaned_end}, expected {found}",
            )
            self._clean_model(model, segments, one.cleaned_end, now_ms)

    # -- foreign commits ---------------------------------------------------------------------------

    @precondition(_any_archived)
    @rule(what=st.sampled_from(["optimize", "shuffle", "vacuum"]), data=st.data())
    def be_a_stranger(self, what: str, data: st.DataObject) -> None:
        """A foreign OPTIMIZE, with or without Z-ORDER, or VACUUM changes no answer."""
        if what == "vacuum":
            self._vacuum_as_stranger()
        else:
            self._optimize_as_stranger(what, data)

    def _optimize_as_stranger(self, what: str, data: st.DataObject) -> None:
        if self._is_table():
            optimizer = self._delta_table().optimize
            if what == "optimize":
                optimizer.compact(target_size=data.draw(st.sampled_from([1_000, 5_000, MIB])))
            else:
                by = data.draw(st.sampled_from([["timestamp"], ["key"], ["key", "timestamp"]]))
                optimizer.z_order(by)
        self._look_cold()

    def _vacuum_as_stranger(self) -> None:
        """A full VACUUM without delay, which even takes files that are being written."""
        if self._is_table():
            self._delta_table().vacuum(
                0, dry_run=False, enforce_retention_duration=False, full=True
            )
        self._look_cold()

    # -- how ---------------------------------------------------------------------------------------

    def _turn_clock(self, by_ms: int) -> None:
        self.clock.advance(by_ms)

    def _live(self, life: Life) -> None:
        for batch in life.updates:
            self._produce(life.partition, 3, [batch])
            self.clock.advance(life.every_ms)
        self._archive(self.archiver, None)
        if life.unarchived:
            self._produce(life.partition, 3, life.unarchived)

    def _begin(self) -> None:
        self.strays.clear()
        super()._begin()

    def _meanwhile(self, what: str, data: st.DataObject) -> Callable[[], None]:
        if what == "clean":
            with_hot = data.draw(st.booleans(), "with hot")
            return lambda: self._clean_up_and_forget(with_hot)
        if what == "vacuum":
            return self._vacuum_as_stranger
        if what in ("optimize", "shuffle"):
            return lambda: self._optimize_as_stranger(what, data)
        return super()._meanwhile(what, data)

    def _clean_up_and_forget(self, with_hot: bool) -> None:
        self._clean_up(STEPS, with_hot=with_hot)
        self._trim()

    def _cleanup(self, *, with_hot: bool) -> Cleanup:
        hot = self._hot if with_hot else None
        return Cleanup(self.topic, self._new_table(), self.clock, hot=hot)

    def _hot(self) -> dict[int, HotSegments]:
        return {tp.partition: seen for tp, seen in self._observe().items()}

    def _clean_up(self, steps: Sequence[str], *, with_hot: bool) -> CleanupReport:
        """A cleanup run without interference."""
        layout = self._look_cold()
        outcomes = self._outcomes(layout, steps, with_hot=with_hot)
        before = [(model.cleaned_end, len(model.removed)) for model in self.models]
        report = self._cleanup(with_hot=with_hot).run(steps)
        require(not report.failures, f"cleanup failed: {report}")
        self._settle_cleaned(layout, [outcomes], done=True)
        if report.vacuumed is not None and self.topic.config["file.delete.delay.ms"] > 0:
            require(report.vacuumed.files == 0, f"files went too early: {report}")
        reported = {
            one.topic_partition.partition: (one.log_start, len(one.dropped))
            for one in report.retained
        }
        expected = {
            number: (self.models[number].log_start, len(outcome.dropped))
            for number, outcome in enumerate(outcomes)
            if outcome.dropped
        }
        require(reported == expected, f"retention reported {reported}, dropped {expected}")
        compacted = {
            one.topic_partition.partition: (one.cleaned_end, one.records_dropped)
            for one in report.compacted
        }
        cleaned = {
            number: (model.cleaned_end, len(model.removed) - removed)
            for number, (model, (end, removed)) in enumerate(zip(self.models, before, strict=True))
            if model.cleaned_end != end
        }
        require(compacted == cleaned, f"compaction reported {compacted}, removed {cleaned}")
        return report

    def _trim(self) -> None:
        """The trim of the hot tier that follows."""
        self.archiver.trim()
        for tp, seen in self._observe().items():
            self.models[tp.partition].local_log_start = seen.local_log_start

    def _outcomes(self, layout: Layout, steps: Sequence[str], *, with_hot: bool) -> list[Outcome]:
        """What retention and compaction must do to each partition."""
        hot = self._hot() if with_hot else None
        config, now_ms = self.topic.config, self.clock.now_ms()
        cold = self.table.snapshot()
        found = []
        for number, model in enumerate(self.models):
            segments: Sequence[ColdSegment] = layout[number]
            log_start = cold.log_start(number)
            log_starts, dropped = (log_start, log_start), frozenset[int]()
            if "retain" in steps:
                kept = retained(
                    segments,
                    config,
                    log_start,
                    model.archived_end,
                    now_ms,
                    all_archived=hot is not None and model.is_archived,
                    hot_only_bytes=hot_only_bytes(hot[number], model.archived_end) if hot else 0,
                )
                segments, log_starts = kept.kept, (kept.lowest, kept.highest)
                dropped = frozenset(segment.base_offset for segment in kept.dropped)
            cleaned, must = None, None
            if "compact" in steps:
                cleaned = dirty(segments, config, log_starts[0], model.cleaned_end, now_ms)
            if cleaned is not None:
                must = eligible(cleaned, config, now_ms)
                cleaned = None if must is False else cleaned
            found.append(Outcome(log_starts, dropped, cleaned, optional=must is None))
        return found

    def _settle_cleaned(
        self, layout: Layout, outcomes: Iterable[list[Outcome]], *, done: bool = False
    ) -> Layout:
        """Tells the models what cleanup did, which must be among the outcomes.

        Args:
            layout: the layout before.
            outcomes: each partition has reached one of them, or a part of one.
            done: nothing interfered, so it has reached all of it.

        Returns:
            The layout now.
        """
        cold = self.table.snapshot()
        now_ms = self.clock.now_ms()
        for number, model in enumerate(self.models):
            possible = [one[number] for one in outcomes]
            where = f"{model.topic_partition}, planned {possible}"
            log_start = cold.log_start(number)
            legal = any(o.log_starts[0] <= log_start <= o.log_starts[1] for o in possible)
            unchanged = log_start <= model.log_start and not done
            require(legal or unchanged, f"the log starts at {log_start}. {where}")
            model.raise_log_start(log_start)
            if done:  # what went with its segment, or goes with it, is not compacted
                left = [s for s in layout[number] if s.base_offset not in possible[0].dropped]
                kept = [s for s in left if s.end_offset > log_start]
                model.deleted_rows &= {record.offset for s in kept for record in s.records}
            cleaned_end = cold.cleaned_end(number)
            ends = {o.cleaned.cleaned_end for o in possible if o.cleaned is not None}
            if cleaned_end != model.cleaned_end:
                require(cleaned_end in ends, f"it is cleaned up to {cleaned_end}. {where}")
                self._clean_model(model, layout[number], cleaned_end, now_ms)
            elif done:
                require(
                    not ends or possible[0].optional,
                    f"it is still cleaned up to {cleaned_end}. {where}",
                )
        after = self._look_cold()
        if done:
            (only,) = outcomes
            for number, outcome in enumerate(only):
                bases = {segment.base_offset for segment in after[number]}
                require(not bases & outcome.dropped, f"expired segments are there: {outcome}")
        return after

    def _clean_model(
        self, model: ModelLog, segments: Sequence[ColdSegment], cleaned_end: int, now_ms: int
    ) -> None:
        """Tells the model that its partition was compacted up to there.

        What a cleaner compacted that was held up may have been deleted meanwhile, all of it.
        """
        below = max(model.log_start, model.cleaned_end)
        first_dirty = next((s.base_offset for s in segments if s.end_offset > below), cleaned_end)
        delete_retention_ms = self.topic.config["delete.retention.ms"]
        model.compact(first_dirty, cleaned_end, now_ms, delete_retention_ms)

    def _look_cold(self) -> Layout:
        """Checks the Delta rows against the models, and returns their segments."""
        rows = self._check_delta_rows()
        files = self.table.snapshot().files
        layout: Layout = [[] for _ in range(PARTITIONS)]
        for partition in range(PARTITIONS):
            for seen in files.segments(partition):
                records = sorted(
                    rows.get((partition, seen.base_offset), []), key=lambda r: r.offset
                )
                require(
                    seen.records == len(records)
                    and seen.max_timestamp_ms == max((r.timestamp_ms for r in records), default=-1)
                    and all(seen.start_offset <= r.offset < seen.end_offset for r in records),
                    f"the index has {seen}, which holds {records[:3]} … {records[-3:]}",
                )
                layout[partition].append(
                    ColdSegment(
                        seen.base_offset,
                        seen.end_offset,
                        seen.size_bytes,
                        seen.modified_ms,
                        tuple(records),
                    )
                )
        return layout

    def _check_optimized(self, steps: Sequence[str]) -> None:
        """Checks that each closed segment is one file, sorted by offset."""
        if "optimize" not in steps:
            return
        for partition in range(PARTITIONS):
            for segment in self.table.snapshot().files.segments(partition)[:-1]:
                paths = [file.path for file in segment.files]
                require(len(paths) == 1 and is_ours(paths[0]), f"{paths} are not optimized")
                records = self._rows_of(self._table_directory() / paths[0], partition).records
                offsets = [record.offset for record in records]
                require(offsets == sorted(offsets), f"{paths} is not sorted: {offsets}")

    def _note_strays(self) -> None:
        """Remembers the sources of files that will never be committed."""
        for path in self._uncommitted():
            if path.name.startswith("clean-"):
                self.strays.setdefault(path, self._active_within(path))

    def _check_leftovers(self) -> None:
        """Checks that no file is left that no commit can name, or that need not be kept."""
        self._check_orphans()
        for path in self._uncommitted():
            if path.name.startswith("clean-"):
                require(
                    self._active_within(path) == self.strays.get(path),
                    f"{path} is left over, though it can never be committed",
                )
        if self.topic.config["file.delete.delay.ms"] == 0:
            active = {path for path, *_ in self._active_files()}
            removed = self._committed() - active
            kept = [path for path in removed if is_ours(path.name) and path.exists()]
            require(not kept, f"{kept} were removed from the table and not deleted")

    def _active_within(self, path: Path) -> set[Path]:
        """The active files that lie wholly in the range of a file's name."""
        start, end = map(int, path.name.split("-")[1:3])
        found = set()
        for active, partition, _ in self._active_files():
            if active.parents[1] != path.parents[1]:
                continue
            offsets = [record.offset for record in self._rows_of(active, partition).records]
            low, high = (min(offsets), max(offsets) + 1) if offsets else (0, 0)
            if is_ours(active.name):
                low, high = map(int, active.name.split("-")[1:3])
            if start <= low and high <= end:
                found.add(active)
        return found

"""Whether a change may be committed as planned, to a table of either kind. Pure."""

from __future__ import annotations

from ..errors import InvalidArgumentError, UnknownTopicIdError
from ..values.topic import Topic
from .change import Change, HotRange, Rewrite
from .registers import ArchivedEnd, CleanedEnd, LogStart, ReservedEnd
from .table import ColdSnapshot


def standing_partitions(
    change: Change, planned_on: ColdSnapshot, current: ColdSnapshot
) -> frozenset[int]:
    """The partitions that can be committed as planned.

    Nobody moved their registers or removed the files that go. (Delta-rs's own check misses removals
    that change no data.) None stands if the policy that asked for the change is outdated.

    Hot rows also fall where offsets were reserved meanwhile: so begins a recovery, which declares
    what its server lost. Rows copied before that would fill the gap after others have read past it.
    Rows committed before that are in the table when somebody sees the gap.
    """
    if change.config_version is not None and current.config_version > change.config_version:
        return frozenset()
    gone = current.files.missing(file.path for file in change.removes)
    fallen = {file.partition for file in change.removes if file.path in gone}
    copied = {ReservedEnd(partition) for partition in change.hot_partitions}
    fallen |= {
        register.partition
        for register in {*change.registers, *copied}
        if current.registers.get(register, 0) != planned_on.registers.get(register, 0)
    }
    return change.partitions - fallen


def check_plan(topic: Topic, change: Change, planned_on: ColdSnapshot) -> None:
    """Refuse a change that would lose or double records if it were committed as planned.

    Raises:
        UnknownTopicIdError: it is for another creation of the topic.
        InvalidArgumentError: anything else.
    """
    for add in change.adds:
        if isinstance(add, HotRange) and add.topic_id != topic.topic_id:
            raise UnknownTopicIdError(
                f"a range of topic {topic.name!r} with id {add.topic_id} does not go into the "
                f"table of its creation {topic.topic_id}; look the topic up again",
                topic_id=add.topic_id,
            )
    if change.empties:
        _check_emptying(change, planned_on)
        return
    for register, value in change.registers.items():
        before = planned_on.registers.get(register, 0)
        archived_end = planned_on.archived_end(register.partition)
        is_mended = isinstance(register, CleanedEnd) and before > archived_end  # see `cleanable`
        if value < before and not is_mended:
            raise InvalidArgumentError(f"{register} only grows: from {before}, not to {value}")
    rewrites = [add for add in change.adds if isinstance(add, Rewrite)]
    rewritten = {file.path for rewrite in rewrites for file in rewrite.files}
    for rewrite in rewrites:
        _check_rewrite(rewrite, planned_on)
    for partition in change.partitions:
        log_start = planned_on.log_start(partition)
        for hot_range in change.hot_ranges(partition)[:1]:
            new_start = change.registers.get(LogStart(partition), 0)
            start = max(planned_on.archived_end(partition), log_start, new_start)
            if hot_range.start_offset != start:
                raise InvalidArgumentError(
                    f"partition {partition} is archived up to {start}, so a range cannot start "
                    f"at {hot_range.start_offset}"
                )
        log_start = change.registers.get(LogStart(partition), log_start)
        for file in change.removes:
            if (
                file.partition == partition
                and file.path not in rewritten
                and file.end_offset > log_start
            ):
                raise InvalidArgumentError(
                    f"removing {file.path} would lose records above the log start {log_start}"
                )


def _check_emptying(change: Change, planned_on: ColdSnapshot) -> None:
    """Archivers that planned before it must fall, whatever archived ends they go back to."""
    for partition in change.partitions:
        start = change.registers.get(LogStart(partition), -1)
        left = planned_on.files.missing(file.path for file in change.removes)
        gone = {file.path for file in change.removes if file.partition == partition} - left
        if (
            change.registers.get(ArchivedEnd(partition)) != start
            or start < planned_on.log_start(partition)
            or change.registers.get(ReservedEnd(partition), 0) <= planned_on.reserved_end(partition)
            or change.adds
            or len(gone) != planned_on.files.rows_of_partition(partition).num_rows
        ):
            raise InvalidArgumentError(
                f"partition {partition} is not emptied by {dict(change.registers)} without its "
                f"{len(gone)} files"
            )


def _check_rewrite(rewrite: Rewrite, planned_on: ColdSnapshot) -> None:
    """`orphans` judges by the files in its range whether a rewrite may still be under way."""
    start, end = rewrite.start_offset, rewrite.end_offset
    within = planned_on.files.within(rewrite.topic_partition.partition, start, end)
    left_out = set(within) - {file.path for file in rewrite.files}
    if left_out:
        raise InvalidArgumentError(
            f"a rewrite of [{start}, {end}) of {rewrite.topic_partition} leaves out "
            f"{min(left_out)}, which lies within; rewrite all files in a range"
        )

"""What a history of a consumer group contradicts, by name. Pure.

| anomaly | means |
|---|---|
| two owners | two members handled records of one partition in one generation |
| order in a group | a member was given an offset at or below one that it had, in one generation |
| skipped by a group | a record of the log lies below a commit, and nobody had handled it by then |
| lost commit | a later generation handled what was committed before, and nothing was lost |
| late commit | a member committed after one of a later generation had |
| group stuck | the group did not come to the log end after all was well again |
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise

from .history import FinalLog, GroupCommit, GroupRead, History, Partition


def judge_group(history: History) -> Iterator[tuple[str, str]]:
    """Anomalies and their details; none if it may have been a group's."""
    finals = {final.partition: final for final in history.finals}
    reads: dict[Partition, list[GroupRead]] = defaultdict(list)
    for read in history.group_reads:
        reads[read.partition].append(read)
    commits: dict[Partition, list[GroupCommit]] = defaultdict(list)
    for commit in history.group_commits:
        commits[commit.partition].append(commit)
    for where, own in reads.items():
        yield from _order(history, where, own)
        if not history.total_losses:  # after which generations are counted anew
            yield from _two_owners(where, own)
            yield from _lost_commits(history, where, own, commits[where])
            yield from _late_commits(where, commits[where])
    for where, final in finals.items():
        if where not in history.unreadable and history.group_end is not None:
            yield from _skipped(where, final, reads[where], commits[where])
            yield from _stuck(where, final, history.group_end)


def _two_owners(where: Partition, reads: list[GroupRead]) -> Iterator[tuple[str, str]]:
    owners: dict[int, str] = {}
    for read in reads:
        owner = owners.setdefault(read.generation_id, read.member)
        if owner != read.member:
            owners[read.generation_id] = read.member
            yield (
                "two owners",
                f"{_named(where)} in generation {read.generation_id}: {owner} and {read.member}, "
                f"which had {read.offsets[0]} at {read.at_s:.1f} s",
            )


def _order(history: History, where: Partition, reads: list[GroupRead]) -> Iterator[tuple[str, str]]:
    last: dict[tuple[str, int], tuple[int, float]] = {}  # the offset, and when
    for read in reads:
        key = read.member, read.generation_id
        had, had_s = last.get(key, (-1, 0.0))
        if any(
            loss.span.start <= read.at_s and had_s <= loss.span.end for loss in history.total_losses
        ):
            had = -1  # generations are counted anew, and the group begins anew
        for before, after in pairwise([had, *read.offsets]):
            if after <= before:
                yield (
                    "order in a group",
                    f"{_named(where)}: {read.member} had {before}, then {after}, in generation "
                    f"{read.generation_id}",
                )
        last[key] = read.offsets[-1], read.at_s


def _skipped(
    where: Partition, final: FinalLog, reads: list[GroupRead], commits: list[GroupCommit]
) -> Iterator[tuple[str, str]]:
    first_s: dict[int, float] = {}
    for read in reads:
        for offset in read.offsets:
            first_s[offset] = min(read.at_s, first_s.get(offset, read.at_s))
    log = sorted({seen.offset for reading in final.readings.values() for seen in reading})
    handled_s = [first_s.get(offset, float("inf")) for offset in log]
    by_then_s = list(accumulate(handled_s, max))  # all up to there were handled by then
    for commit in commits:
        rank = bisect_left(log, commit.offset)
        if rank and by_then_s[rank - 1] > commit.acked_s:
            late = next(n for n in range(rank) if handled_s[n] > commit.acked_s)
            yield (
                "skipped by a group",
                f"{_named(where)}: {commit.member} committed {commit.offset} at "
                f"{commit.acked_s:.1f} s, and nobody had handled {log[late]} by then",
            )
            return


def _lost_commits(
    history: History, where: Partition, reads: list[GroupRead], commits: list[GroupCommit]
) -> Iterator[tuple[str, str]]:
    safe = sorted(
        (
            commit
            for commit in commits
            if not any(
                commit.asked_s <= loss.end and commit.acked_s >= loss.start
                for loss in history.losses
            )
        ),
        key=lambda commit: commit.acked_s,
    )
    began: dict[tuple[str, int], GroupRead] = {}
    for read in reads:
        began.setdefault((read.member, read.generation_id), read)
    for read in began.values():
        for commit in safe:
            since_s = read.at_s if read.since_s is None else read.since_s
            if commit.generation_id >= read.generation_id or commit.acked_s > since_s:
                continue
            if read.offsets[0] < commit.offset:
                yield (
                    "lost commit",
                    f"{_named(where)}: {commit.member} committed {commit.offset} at "
                    f"{commit.acked_s:.1f} s in generation {commit.generation_id}; {read.member} "
                    f"began at {read.offsets[0]} at {read.at_s:.1f} s in {read.generation_id}",
                )
                return


def _late_commits(where: Partition, commits: list[GroupCommit]) -> Iterator[tuple[str, str]]:
    newest: GroupCommit | None = None  # of those that were answered, the latest generation's first
    answered = sorted(commits, key=lambda commit: commit.acked_s)
    asked = sorted(commits, key=lambda commit: commit.asked_s)
    at = 0
    for commit in asked:
        while at < len(answered) and answered[at].acked_s < commit.asked_s:
            if newest is None or answered[at].generation_id > newest.generation_id:
                newest = answered[at]
            at += 1
        if newest is not None and commit.generation_id < newest.generation_id:
            yield (
                "late commit",
                f"{_named(where)}: {commit.member} committed {commit.offset} in generation "
                f"{commit.generation_id}, asked for at {commit.asked_s:.1f} s; {newest.member} had "
                f"in {newest.generation_id} at {newest.acked_s:.1f} s",
            )
            return


def _stuck(
    where: Partition, final: FinalLog, end: Mapping[Partition, int]
) -> Iterator[tuple[str, str]]:
    log = [seen.offset for reading in final.readings.values() for seen in reading]
    if log and end.get(where, 0) <= max(log):
        yield (
            "group stuck",
            f"{_named(where)} of {final.topic}: committed is {end.get(where)}, the last record is "
            f"{max(log)}",
        )


def _named(where: Partition) -> str:
    return f"partition {where.number} of {where.topic_id[:8]}"

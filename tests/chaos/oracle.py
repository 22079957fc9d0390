"""What a history contradicts, by name. Pure; knows the rules of a log and none of lakelog's code.

| anomaly | means |
|---|---|
| lost write | an acknowledged record is not in the log, and no declared loss explains it |
| phantom write | a record is there that nobody sent, or that its producer was told is surely not |
| duplicate | one record at two places |
| reorder | records of one producer session in a partition, not in the order they were sent |
| offset reuse | two records at one offset, for whoever looked and whenever |
| skipped offset | the log, or a consumer, went over an offset that it had to have |
| position going back | a consumer was given an offset at or below one that it had |
| consumer stuck | a consumer did not come to the log end after all was well again |
| erased record | a record is there whose key was erased, by a certificate, up to beyond it |
| readers differ | two ways to read the whole log gave two lists |

Those of consumer groups are in `group_oracle`. What a harness notices itself (a process that
crashed, a log that cannot be read) comes under the name it was given.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .group_oracle import judge_group
from .history import (
    Consumption,
    Creation,
    FinalLog,
    History,
    Kind,
    Outcome,
    Partition,
    Seen,
    Send,
    Span,
)
from .payload import NULLED


@dataclass(frozen=True, slots=True)
class Anomaly:
    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


def judge(history: History) -> list[Anomaly]:
    """Everything that is wrong with the history; nothing if it may have been a log's."""
    return [
        *(Anomaly(name, detail) for name, detail in history.troubles),
        *(Anomaly(name, detail) for name, detail in judge_group(history)),
        *_readers_differ(history),
        *_offset_reuse(history),
        *_duplicates(history),
        *_phantoms(history),
        *_reorders(history),
        *_lost_writes(history),
        *_lost_work(history),
        *_erased_records(history),
        *_read_and_gone(history),
        *_skipped_by_the_log(history),
        *_consumers(history),
    ]


# -- what is there ---------------------------------------------------------------------------------


def _the_log(final: FinalLog) -> list[Seen]:
    """The log by its first reader; that all agree is a rule of its own."""
    return next(iter(final.readings.values()), [])


def _readers_differ(history: History) -> Iterator[Anomaly]:
    for final in history.finals:
        first, *others = final.readings.items()
        for name, reading in others:
            if reading != first[1]:
                here, there = set(first[1]), set(reading)
                yield Anomaly(
                    "readers differ",
                    f"{_at(history, final.partition)}: {first[0]} has {len(first[1])} records, "
                    f"{name} {len(reading)}; only {first[0]}: {_some(here - there)}; only {name}: "
                    f"{_some(there - here)}; same set, other order: {here == there}",
                )


def _sightings(history: History) -> Iterator[tuple[Partition, Seen, str]]:
    """Each record that anybody was shown or told of, where, and by whom."""
    for where, seen, who in _shown(history):
        if seen.payload != NULLED or not _is_erased_from(history, where):
            yield where, seen, who


def _shown(history: History) -> Iterator[tuple[Partition, Seen, str]]:
    for one in history.consumptions:
        for seen in one.seen:
            yield one.partition, seen, f"consumer {one.consumer}"
    for read in history.group_reads:
        for seen in map(Seen, read.offsets, read.payloads):
            yield read.partition, seen, f"consumer {read.member}"
    for final in history.finals:
        for reader, reading in final.readings.items():
            for seen in reading:
                yield final.partition, seen, reader
    for send in history.sends:
        if send.outcome is Outcome.ACKED:
            creation = _creation_of(history, send)
            if creation is not None:
                where = Partition(creation.topic_id, send.partition)
                yield where, Seen(send.offset, send.payload), "its acknowledgement"


def _offset_reuse(history: History) -> Iterator[Anomaly]:
    holders: dict[tuple[Partition, int], tuple[str, str]] = {}
    for where, seen, who in _sightings(history):
        payload, first_who = holders.setdefault((where, seen.offset), (seen.payload, who))
        if payload != seen.payload:
            yield Anomaly(
                "offset reuse",
                f"{_at(history, where)} offset {seen.offset} is {payload} by {first_who} and "
                f"{seen.payload} by {who}",
            )


def _duplicates(history: History) -> Iterator[Anomaly]:
    homes: dict[str, tuple[Partition, int]] = {}
    told = set()
    # What somebody saw of work that is repeated may have been lost since, and appended again.
    again = {send.payload for send in history.sends if send.is_repeated}
    for where, seen, who in _sightings(history):
        if seen.payload in again and who.startswith("consumer"):
            continue
        home = homes.setdefault(seen.payload, (where, seen.offset))
        if home != (where, seen.offset) and seen.payload not in told:
            told.add(seen.payload)
            yield Anomaly(
                "duplicate",
                f"{seen.payload} is at {_at(history, home[0])} offset {home[1]} and, by {who}, at "
                f"{_at(history, where)} offset {seen.offset}",
            )
    for final in history.finals:
        for reader, reading in final.readings.items():
            for before, after in pairwise(sorted(reading)):
                if before == after:
                    yield Anomaly(
                        "duplicate",
                        f"{_at(history, final.partition)} offset {after.offset}: {after.payload} "
                        f"twice in {reader}",
                    )


def _phantoms(history: History) -> Iterator[Anomaly]:
    sends = {send.payload: send for send in history.sends}
    told = set()
    for where, seen, who in _sightings(history):
        send = sends.get(seen.payload)
        wrong = "nobody sent it"
        if send is not None:
            wrong = "its producer was told that it is surely not written"
            if send.outcome is not Outcome.REFUSED:
                continue
        if seen.payload not in told:
            told.add(seen.payload)
            yield Anomaly(
                "phantom write",
                f"{seen.payload} at {_at(history, where)} offset {seen.offset} by {who}: {wrong}",
            )


def _reorders(history: History) -> Iterator[Anomaly]:
    by_payload = {send.payload: send for send in history.sends}
    again = {send.payload for send in history.sends if send.is_repeated}
    lists = [
        (
            one.partition,
            f"consumer {one.consumer}",
            [seen for seen in one.seen if seen.payload not in again],
        )
        for one in history.consumptions
    ]
    for final in history.finals:
        lists += [(final.partition, name, reading) for name, reading in final.readings.items()]
    for where, who, seen in lists:
        latest: dict[str, Send] = {}
        for record in seen:
            send = by_payload.get(record.payload)
            if send is None:
                continue
            before = latest.get(send.session)
            if before is not None and before.sequence > send.sequence:
                yield Anomaly(
                    "reorder",
                    f"{_at(history, where)} by {who}: {send.payload} at offset {record.offset} "
                    f"comes after {before.payload}",
                )
            latest[send.session] = send


# -- what must be there ----------------------------------------------------------------------------


def _lost_writes(history: History) -> Iterator[Anomaly]:
    finals = {final.partition: final for final in history.finals}
    present = {final.partition: {s.offset: s for s in _the_log(final)} for final in history.finals}
    survivors = _last_of_keys(history)
    for send in history.sends:
        creation = _creation_of(history, send)
        if send.outcome is not Outcome.ACKED or creation is None or not creation.is_last:
            continue
        where = Partition(creation.topic_id, send.partition)
        final = finals.get(where)
        if where in history.unreadable:
            continue
        if final is None:
            yield Anomaly("lost write", f"{_at(history, where)} is gone with {send.payload}")
            continue
        if send.offset in present[where]:
            continue  # with another payload it is offset reuse
        if _may_be_deleted(creation.kind, final, send.offset, survivors.get((where, send.key), -1)):
            continue
        if _may_be_erased(history, creation.topic_id, send):
            continue
        if _may_be_lost(history, final, send, send.offset):
            continue
        yield Anomaly(
            "lost write",
            f"{_at(history, where)} offset {send.offset}: {send.payload}, acknowledged"
            f"{' as durable' if send.is_durable else ''} at {send.acked_s:.1f} s; the log is "
            f"[{final.log_start}, {final.log_end}), {_gap_of(history, final, send.offset)}",
        )


def _lost_work(history: History) -> Iterator[Anomaly]:
    """What work was told to be there is there, unless it was lost since."""
    there = {seen.payload for final in history.finals for seen in _the_log(final)}
    unread = {where.topic_id for where in history.unreadable}
    kept = {
        creation.topic
        for creation in history.creations
        if creation.is_last and creation.kind is Kind.PLAIN and creation.topic_id not in unread
    }
    lives = {one.topic: one.topic_id for one in history.creations if one.is_last}
    for send in history.sends:
        if send.outcome is not Outcome.APPENDED or send.payload in there or send.topic not in kept:
            continue
        if _may_be_erased(history, lives[send.topic], send):
            continue
        tails = any(
            send.asked_s <= loss.end and send.acked_s >= loss.start for loss in history.losses
        )
        if not tails and not any(send.asked_s <= loss.span.end for loss in history.total_losses):
            yield Anomaly(
                "lost write", f"{send.payload}, which was there at {send.acked_s:.1f} s, is gone"
            )


def _read_and_gone(history: History) -> Iterator[Anomaly]:
    """What a consumer had, acknowledged or not, stays for the next one too."""
    finals = {final.partition: final for final in history.finals}
    present = {final.partition: {s.offset for s in _the_log(final)} for final in history.finals}
    kinds = {creation.topic_id: creation.kind for creation in history.creations}
    sends = {send.payload: send for send in history.sends}
    survivors = _last_of_keys(history)
    for one in history.consumptions:
        final = finals.get(one.partition)
        for seen in one.seen if final is not None else ():
            send = sends.get(seen.payload)
            if send is None or seen.offset in present[one.partition]:
                continue
            survivor = survivors.get((one.partition, send.key), -1)
            if _may_be_deleted(kinds[one.partition.topic_id], final, seen.offset, survivor):
                continue
            if _may_be_erased(history, one.partition.topic_id, send):
                continue
            if send.outcome is Outcome.ACKED or _may_be_lost(history, final, send, seen.offset):
                continue  # what was acknowledged is judged by that
            yield Anomaly(
                "lost write",
                f"{_at(history, one.partition)} offset {seen.offset}: consumer {one.consumer} had "
                f"{seen.payload}, which is gone, {_gap_of(history, final, seen.offset)}",
            )


def _erased_records(history: History) -> Iterator[Anomaly]:
    """What a certificate said is gone is in no reading of the log."""
    sends = {send.payload: send for send in history.sends}
    for final in history.finals:
        topic_id, number = final.partition
        done = [
            one
            for one in history.erasures
            if one.topic_id == topic_id and one.ended_s is not None and number in one.ends
        ]
        for reader, reading in final.readings.items():
            for seen in reading:
                send = sends.get(seen.payload)
                by = [one for one in done if send and one.key == send.key]
                if any(seen.offset < one.ends[number] for one in by):
                    yield Anomaly(
                        "erased record",
                        f"{_at(history, final.partition)} offset {seen.offset}: {seen.payload} of "
                        f"key {by[0].key}, erased below {max(one.ends[number] for one in by)}, is "
                        f"there by {reader}",
                    )


def _is_erased_from(history: History, where: Partition) -> bool:
    return any(one.topic_id == where.topic_id for one in history.erasures)


def _may_be_erased(history: History, topic_id: str, send: Send) -> bool:
    """Whether an erasure of its key may have taken it: one that had not ended when it was sent."""
    return any(
        one.topic_id == topic_id
        and one.key == send.key
        and (one.ended_s is None or send.sent_s <= one.ended_s)
        for one in history.erasures
    )


def _may_be_deleted(kind: Kind, final: FinalLog, offset: int, survivor: int) -> bool:
    """Whether the topic's policy may have taken it, where its key's last offset is `survivor`."""
    if kind is Kind.RETAINED:
        return offset < final.log_start
    return kind is Kind.COMPACTED and offset < survivor


def _may_be_lost(history: History, final: FinalLog, send: Send, offset: int) -> bool:
    """Whether it went with a tail, or with all of Redis, and a gap says so."""
    if not any(gap.start <= offset < gap.end for gap in _gaps(history, final)):
        return False
    if any(
        send.sent_s <= loss.span.end and offset >= loss.archived.get(final.partition, 0)
        for loss in history.total_losses
    ):
        return True
    is_acked = send.outcome is Outcome.ACKED
    if is_acked and send.is_durable:
        return False  # only the acknowledgement says so: before it, one server alone may have it
    # What has no acknowledgement may have been appended at any time after it was sent.
    until_s = send.acked_s if is_acked else float("inf")
    return any(send.sent_s <= loss.end and until_s >= loss.start for loss in history.losses)


def _last_of_keys(history: History) -> dict[tuple[Partition, str | None], int]:
    """The last offset of each key that is in a log in the end."""
    last: dict[tuple[Partition, str | None], int] = {}
    for final in history.finals:
        for seen in _the_log(final):
            place = final.partition, final.keys.get(seen.payload)
            last[place] = max(last.get(place, -1), seen.offset)
    return last


def _skipped_by_the_log(history: History) -> Iterator[Anomaly]:
    """Offsets are dense but for declared gaps, what compaction took, and what lies below the start.

    A log that nothing is deleted from starts at 0.
    """
    kinds = {creation.topic_id: creation.kind for creation in history.creations}
    for final in history.finals:
        kind = kinds[final.partition.topic_id]
        at = _at(history, final.partition)
        gaps = _gaps(history, final)
        if gaps and not history.restarts:
            yield Anomaly("skipped offset", f"{at}: a gap although no server went away")
        if final.log_start > 0 and kind is not Kind.RETAINED:
            yield Anomaly("skipped offset", f"{at} starts at {final.log_start}; nothing deletes")
        if kind is Kind.COMPACTED or _is_erased_from(history, final.partition):
            continue  # each record by itself is judged by its acknowledgement
        next_offset = final.log_start
        for offset in [seen.offset for seen in _the_log(final)] + [final.log_end]:
            if offset > next_offset and not _covered(gaps, next_offset, offset):
                yield Anomaly(
                    "skipped offset",
                    f"{at} has nothing in [{next_offset}, {offset}), and no gap declares all of it",
                )
            next_offset = offset + 1


def _gaps(history: History, final: FinalLog) -> list[Span]:
    """All gaps that were ever declared, also those that were lost with Redis."""
    lost = [loss.gaps.get(final.partition, ()) for loss in history.total_losses]
    return [*final.gaps, *(gap for gaps in lost for gap in gaps)]


def _covered(gaps: Iterable[Span], start: float, end: float) -> bool:
    for gap in sorted(gaps):
        if gap.start <= start:
            start = max(start, gap.end)
    return start >= end


def _consumers(history: History) -> Iterator[Anomaly]:
    finals = {final.partition: final for final in history.finals}
    for one in history.consumptions:
        at = f"consumer {one.consumer} of {_at(history, one.partition)}"
        yield from _backwards(one, at)
        final = finals.get(one.partition)
        if final is None:
            continue
        if one.position >= 0 and one.position < final.log_end:
            yield Anomaly(
                "consumer stuck",
                f"{at} ended at {one.position}, the log ends at {final.log_end}",
            )
        # Where it is now, by what it was given; what came after that it may not have had yet.
        position = max(one.position, one.seen[-1].offset + 1 if one.seen else one.start)
        log = [seen.offset for seen in _the_log(final)]
        had = {seen.offset for seen in one.seen}
        passed = log[bisect_left(log, one.start) : bisect_right(log, position - 1)]
        missed = [offset for offset in passed if offset not in had]
        if missed:
            yield Anomaly("skipped offset", f"{at} never had {_some(missed)}; it is at {position}")


def _backwards(one: Consumption, at: str) -> Iterator[Anomaly]:
    for before, after in pairwise(one.seen):
        if after.offset <= before.offset:
            yield Anomaly("position going back", f"{at} had {before.offset}, then {after.offset}")
    if one.seen and one.seen[0].offset < one.start:
        yield Anomaly("position going back", f"{at} began at {one.start}, had {one.seen[0].offset}")
    if 0 <= one.position <= (one.seen[-1].offset if one.seen else one.start - 1):
        yield Anomaly("position going back", f"{at} ended at {one.position}, below what it had")


# -- words -----------------------------------------------------------------------------------------


def _creation_of(history: History, send: Send) -> Creation | None:
    """Which life of its topic it was written to; None where that cannot be told."""
    lives = [creation for creation in history.creations if creation.topic == send.topic]
    if len(lives) == 1:
        return lives[0]
    # An acknowledgement does not say. What was sent when the last one was there is in that one.
    return next((life for life in lives if life.is_last and send.sent_s > life.created_s), None)


def _at(history: History, partition: Partition) -> str:
    creations = [c for c in history.creations if c.topic_id == partition.topic_id]
    name = creations[0].topic if creations else "a topic that nobody made"
    dropped = "" if creations and creations[0].is_last else f" ({partition.topic_id[:8]}, dropped)"
    return f"{name}-{partition.number}{dropped}"


def _gap_of(history: History, final: FinalLog, offset: int) -> str:
    for gap in _gaps(history, final):
        if gap.start <= offset < gap.end:
            return f"in the gap [{gap.start}, {gap.end})"
    return "in no declared gap"


def _some(things: Iterable[Any]) -> str:
    listed = sorted(things)
    return f"{len(listed)}, such as {listed[:5]}" if listed else "none"

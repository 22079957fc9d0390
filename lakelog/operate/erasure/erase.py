"""Erases records of one topic from both tiers, and from what Redis keeps on its disk.

Entries of a stream cannot change, so hot records go the way of all records: archive, trim, rewrite
the files that hold matches, delete those. The order is what makes a crash harmless: Redis lets go
only of what cold holds, and the next run begins again with what either tier still has.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ...archive.archiver import Archiver
from ...archive.local_retention import trimmable
from ...base.failpoints import failpoint
from ...base.text_table import counted
from ...cleanup.erasure import ColdErased, Erasure
from ...cold.table import ColdSnapshot, ColdTable
from ...errors import (
    CorruptRecordError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    PartlyFailedError,
)
from ...groups.admin import ShareGroupAdmin
from ...hot.hot_log import HotLog
from ...hot.server_info import NONE, REWRITTEN
from ...read.dead_letters import HEADER_PREFIX
from ...read.topic_log import TopicLog
from ...read.where import Where
from ...values.offsets import HotOffsets
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from ..skip import noted
from ..who import who
from .certificate import Erased, HotErased
from .condition import RecordCondition


class HotSide(Struct, frozen=True):
    """The hot tier of a topic, and what goes with it.

    Args:
        log: over both tiers.
        kept: how many deleted topics of the name Redis still keeps.
    """

    hot: HotLog
    archiver: Archiver
    log: TopicLog
    share_groups: ShareGroupAdmin
    kept: int = 0

    def offsets(self, topic: Topic) -> dict[int, HotOffsets]:
        """The partitions as Redis has them."""
        seen = self.hot.offsets(topic.topic_partitions(), topic_id=topic.topic_id)
        return {tp.partition: offsets for tp, offsets in seen.items()}


class RecordErasure(Struct, frozen=True):
    """The erasure of the matches below where the log ends now, and of those above it that it meets.

    Args:
        side: None without a Redis: its copies stay.
        version: of lakelog.
        quarantine: whether removed files that cannot be read are given up, and what an older
            version put in quarantine.
    """

    topic: Topic
    table: ColdTable
    condition: RecordCondition
    side: HotSide | None
    version: str
    now_ms: Callable[[], int]
    quarantine: bool = False

    def plan(self) -> Erased:
        """What `run` would do now; changes nothing.

        Raises:
            LakelogError: a tier cannot be read.
        """
        began = self._now()
        hot: HotErased | None = None
        unarchived: dict[int, int] = {}
        topic, side = self.topic, self.side
        if side is not None:
            seen = side.offsets(topic)
            spans = {number: (one.local_log_start, one.log_end) for number, one in seen.items()}
            found = _hot_matches(side.log, self.condition.where, spans)
            cold = self.table.snapshot()
            unarchived = {
                number: count
                for number, offsets in found.items()
                if (count := int(np.sum(offsets >= cold.archived_end(number))))
            }
            kept = _kept_by_older(topic, side)
            told = () if self.quarantine else _kept_told(topic, kept)
            hot = HotErased(
                {number: one.log_end for number, one in seen.items()},
                {number: len(offsets) for number, offsets in found.items()},
                given_up=kept if self.quarantine else {},
                beyond=(*told, *_beyond(topic, side)),
            )
        return self._erased(began, self._cold.plan(), hot, (), unarchived)

    def run(self) -> Erased:
        """Erases. Doing it again after a crash, or after an error, does what is left.

        Raises:
            PartlyFailedError: something could not be done; the rest was, and the report is in the
                error.
            LakelogError: a tier cannot be used at all.
        """
        began, side = self._now(), self.side
        hot: HotErased | None = None
        failures: list[LakelogError] = []
        if side is not None:
            hot, damages = self._empty_hot(side)
            failures += damages
            hot = _without_copies(self.topic, side, hot, gives_up=self.quarantine)
        cold = self._cold.run()
        failpoint("erase.before_persistence")
        if side is not None and hot is not None:
            try:
                hot = _persisted(side, hot)
                failpoint("erase.before_last_look")
                failures += _still_there(self.topic, side, self.condition, hot, failures)
            except LakelogError as error:  # what was done until then is told
                failures.append(error)
        failures += cold.failures.values()
        erased = self._erased(began, cold, hot, failures, {})
        if failures:
            more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
            raise PartlyFailedError(
                f"records of topic {self.topic.name!r} were erased as far as possible, but "
                f"{failures[0].message.rstrip('.')}{more}. Mend that, and erase again: it does the "
                "rest",
                topic=self.topic.name,
                report=erased,
            )
        return erased

    @property
    def _cold(self) -> Erasure:
        return Erasure(self.topic, self.table, self.condition, quarantine=self.quarantine)

    def _now(self) -> tuple[int, float]:
        """The log's time, and this process's."""
        return self.now_ms(), time.monotonic()

    def _empty_hot(self, side: HotSide) -> tuple[HotErased, list[CorruptRecordError]]:
        """Has Redis hold no match below its log ends of now, and cold all that it held.

        Returns:
            What became of it, and why partitions could not be archived.
        """
        topic = self.topic
        ends = {number: seen.log_end for number, seen in side.offsets(topic).items()}
        _, errors = side.archiver.attempt(dict(ends))
        for error in errors:
            if not _is_damage(error):
                raise error  # it ended the run, and may say that this is not the topic's table
        failures: list[CorruptRecordError] = list(filter(_is_damage, errors))
        failpoint("erase.after_archive")
        seen = side.offsets(topic)
        within = {n: min(seen[n].log_end, end) for n, end in ends.items()}
        damaged = _damaged(failures)
        spans = {
            number: (seen[number].local_log_start, end)
            for number, end in within.items()
            if number not in damaged
        }
        found, errors = _sound_hot_matches(side.log, self.condition.where, spans)
        failures += errors
        cold = self.table.snapshot()
        trimmed: dict[int, OffsetRange] = {}
        shared: list[int] = []
        for number, end in within.items():
            one = seen[number]
            is_whole = number in found or side.hot.holds_unread(topic.partition(number), one)
            # What lies above is skipped offsets, or was kept from being archived by a failure.
            end = max(one.local_log_start, min(end, cold.archive_start(number)))
            gone, is_free = self._let_go(side, cold, number, one, end, is_whole=is_whole)
            if is_whole or gone > one.local_log_start:
                trimmed[number] = OffsetRange(one.local_log_start, gone)
            if not is_free:
                shared.append(number)
        failpoint("erase.after_trim")
        matches = {number: len(offsets) for number, offsets in found.items()}
        beyond = (*_shared_nodes(topic, shared), *_beyond(topic, side))
        return HotErased(ends, matches, trimmed, beyond=beyond), failures

    def _let_go(
        self,
        side: HotSide,
        cold: ColdSnapshot,
        number: int,
        seen: HotOffsets,
        end: int,
        *,
        is_whole: bool,
    ) -> tuple[int, bool]:
        """Trims a partition as far as it takes to free what it held of records that are to go.

        Where entries went before, nobody knows whose they were, and their bytes are there until the
        node is free that they share with the oldest entries: those go, too, few as they are.

        Args:
            end: no further than this.
            is_whole: whether it holds such records now, so that all goes up to there.

        Returns:
            How far it was trimmed, and whether no node has bytes of what went.
        """
        hot, topic_partition = side.hot, self.topic.partition(number)

        def trim(to: int) -> None:
            span = OffsetRange(seen.local_log_start, to)
            _, lost = trimmable(self.topic, self.table, cold, {number: span})
            if lost:
                raise lost[0]
            hot.trim(
                topic_partition,
                to,
                archived_end=seen.settled_end(cold.archive_start(number)),
                drop_unread=True,
                topic_id=self.topic.topic_id,
            )

        nodes = hot.nodes(topic_partition)
        if is_whole or (nodes is not None and nodes.has_gone_amid):
            trim(end)
            return end, not hot.holds_entries(topic_partition)
        to = seen.local_log_start
        if nodes is None:
            return to, not to and not seen.gaps
        if not nodes.has_gone:
            return to, True
        entries = 1
        while to < end:
            to = min(end, max(to, hot.end_of_first(topic_partition, entries)))
            trim(to)
            # They are freed in order, and appends only add some: if there are fewer, the first is
            # gone.
            now = hot.nodes(topic_partition)
            if now is None or now.count < nodes.count:
                return to, now is not None
            entries *= 2
        return to, not hot.holds_entries(topic_partition)

    def _erased(
        self,
        began: tuple[int, float],
        cold: ColdErased,
        hot: HotErased | None,
        failures: Sequence[LakelogError],
        unarchived: Mapping[int, int],
    ) -> Erased:
        salt = secrets.token_bytes(16)
        began_ms, began_s = began
        try:
            ended_ms = self.now_ms()
        except LakelogError:  # it is Redis's clock
            ended_ms = began_ms + int((time.monotonic() - began_s) * 1000)
        return Erased(
            self.topic,
            self.condition.digest(salt),
            salt,
            who(),
            self.version,
            began_ms,
            ended_ms,
            cold,
            hot,
            tuple(failures),
            unarchived,
        )


def _is_damage(error: LakelogError) -> TypeGuard[CorruptRecordError]:
    """Whether it is about one partition, so that the others can be gone on with."""
    return isinstance(error, CorruptRecordError) and error.topic_partition is not None


def _sound_hot_matches(
    log: TopicLog, where: Where, spans: Mapping[int, tuple[int, int]]
) -> tuple[dict[int, np.ndarray], list[CorruptRecordError]]:
    """As `_hot_matches`, without the partitions that cannot be read, and why they cannot."""
    errors: list[CorruptRecordError] = []
    while True:
        try:
            return _hot_matches(log, where, spans), errors
        except CorruptRecordError as error:
            if error.topic_partition is None or error.topic_partition.partition not in spans:
                raise
            errors.append(error)
            number = error.topic_partition.partition
            spans = {other: span for other, span in spans.items() if other != number}


def _hot_matches(
    log: TopicLog, where: Where, spans: Mapping[int, tuple[int, int]]
) -> dict[int, np.ndarray]:
    """The offsets of the matching records that Redis holds, by partition that has any.

    Args:
        spans: what it holds of each, [start, end).
    """
    found: dict[int, list[np.ndarray]] = {}
    filled = {number: span for number, span in spans.items() if span[0] < span[1]}
    for table in log.search_ranges(filled, where):
        partitions = table["partition"].to_numpy()
        offsets = table["offset"].to_numpy()
        for number in np.unique(partitions).tolist():
            found.setdefault(number, []).append(offsets[partitions == number])
    return {number: np.concatenate(parts) for number, parts in found.items()}


def _without_copies(topic: Topic, side: HotSide, hot: HotErased, *, gives_up: bool) -> HotErased:
    """Without what was left of skipping an entry; told, or without, what an older version kept."""
    for topic_partition in topic.topic_partitions():
        side.hot.skips(topic_partition, topic.topic_id).drop_copy()
    kept = _kept_by_older(topic, side)
    if not gives_up:
        return replace(hot, beyond=(*_kept_told(topic, kept), *hot.beyond))
    for number in kept:
        side.hot.skips(topic.partition(number), topic.topic_id).drop_kept_by_older()
    return replace(hot, given_up=kept)


def _kept_by_older(topic: Topic, side: HotSide) -> dict[int, tuple[str, ...]]:
    """The ids of entries of which an older version kept the bytes in Redis, by partition."""
    found = {
        tp.partition: tuple(side.hot.skips(tp, topic.topic_id).kept_by_older())
        for tp in topic.topic_partitions()
    }
    return {number: ids for number, ids in found.items() if ids}


def _kept_told(topic: Topic, kept: Mapping[int, Sequence[str]]) -> Iterator[str]:
    for number, ids in kept.items():
        yield (
            f"damaged entries of {topic.partition(number)} that an older version put in quarantine "
            f"({', '.join(ids)}), and that may hold a match: erase again with --quarantine to give "
            "them up"
        )


def _persisted(side: HotSide, hot: HotErased) -> HotErased:
    """With what became of the servers' files on disk."""
    servers = side.hot.rewrite_persistence()
    beyond = list(hot.beyond)
    for one in servers:
        kept = {"append-only file": one.append_only_file, "snapshot": one.snapshot}
        beyond += [
            f"the {name} of Redis at {one.server}: {said}. It holds what was trimmed until the "
            "server writes it anew"
            for name, said in kept.items()
            if said not in (REWRITTEN, NONE)
        ]
        if one.replicas:
            beyond.append(
                f"the files on disk of {counted(one.replicas, 'replica')} of {one.server}: they "
                "follow in memory, and write their own files anew by their own settings"
            )
        if one.slow_log_entries:
            beyond.append(
                f"the slow log of {one.server}, which shows the beginning of long arguments: "
                "SLOWLOG RESET empties it"
            )
    return replace(hot, servers=servers, beyond=tuple(beyond))


def _still_there(
    topic: Topic,
    side: HotSide,
    condition: RecordCondition,
    hot: HotErased,
    failures: Sequence[LakelogError],
) -> list[LakelogError]:
    """Why Redis holds matches in spite of all that went.

    Until its file was new, a restart or a failover without the last that it had done brought them
    back: also what an earlier run had it let go of.

    Args:
        failures: of these partitions it is known already.
    """
    seen = side.offsets(topic)
    known = _damaged(failures)
    back = {n for n, span in hot.trimmed.items() if seen[n].local_log_start < span.end}
    back |= {
        number
        for number in hot.ends
        if number not in known and side.hot.holds_unread(topic.partition(number), seen[number])
    }
    if hot.given_up:
        back |= _kept_by_older(topic, side).keys()
    unasked = back | known
    spans = {
        number: (seen[number].local_log_start, min(seen[number].log_end, end))
        for number, end in hot.ends.items()
        if number not in unasked
    }
    # Of Redis alone: what came back may lie below the log start, which the table knows.
    alone = TopicLog(topic, side.hot, None, stored_values=side.log.stored_values)
    found, errors = _sound_hot_matches(alone, condition.where, spans)
    back |= found.keys()
    return [
        *errors,
        *(
            HotTierUnavailableError(
                f"Redis restarted or failed over meanwhile, and {topic.partition(number)} holds "
                "again what it had let go of"
            )
            for number in sorted(back)
        ),
    ]


def _damaged(failures: Iterable[LakelogError]) -> set[int]:
    """The partitions of damages."""
    found = (error.topic_partition for error in failures if _is_damage(error))
    return {one.partition for one in found if one is not None}


def _shared_nodes(topic: Topic, shared: Iterable[int]) -> Iterator[str]:
    """Where Redis may keep bytes of what it let go of; see `hot.stream_nodes`."""
    for number in shared:
        yield (
            f"memory of Redis that entries of {topic.partition(number)} share with later ones: "
            "nobody is given them, and their bytes go once those are archived and trimmed too, as "
            "the next erasure does (what stands for a gap at the log's end, once records follow it)"
        )


def _beyond(topic: Topic, side: HotSide) -> tuple[str, ...]:
    """What of the keyspace, and of what was in it, is not looked through."""
    said = []
    saved = [
        one.saved_to
        for tp in topic.topic_partitions()
        for one in noted(side.hot, tp, topic.topic_id)
        if one.tier == "hot" and one.saved_to and one.size_bytes
    ]
    if saved:
        said.append(
            f"the files that bytes of skipped entries were saved to: {', '.join(saved)}. Delete "
            "those that may hold a match"
        )
    if side.kept:
        said.append(
            f"{counted(side.kept, 'deleted topic')} of the name {topic.name!r} that "
            f"{'is' if side.kept == 1 else 'are'} still kept: `lakelog topics purge {topic.name}` "
            "removes them for good"
        )
    groups = [
        group.group_id
        for group in side.share_groups.list()
        if any(one.topic_partition.topic == topic.name for one in group.partitions)
    ]
    if groups:
        said.append(
            f"dead-letter topics of the share groups {', '.join(groups)}: they are topics of their "
            "own, and keep the keys; erase there too, such as by --where '"
            f'header["{HEADER_PREFIX}topic"] = "{topic.name}" and key = …\''
        )
    return tuple(said)


def untiered(topic: Topic) -> InvalidArgumentError:
    """The error of who would erase records that Redis alone holds."""
    return InvalidArgumentError(
        f"topic {topic.name!r} is not archived (remote.storage.enable=false), and the entries of a "
        "Redis stream cannot change, so no single record of it can be erased. Have it archived "
        f"first: `lakelog topics alter {topic.name} --config remote.storage.enable=true`; or "
        f"forget all up to such a record: `lakelog delete-records {topic.name}`",
        topic=topic.name,
    )

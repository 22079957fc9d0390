"""Keeps a copy of what groups have committed under the cold root, and brings it back from there."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct

from ..archive.report import NOT_RECORDED, Trouble, why
from ..base.failpoints import failpoint
from ..errors import HotTierUnavailableError, LakelogError
from ..groups.admin import GroupAdmin
from ..groups.group_records import GroupRecords
from ..groups.recorded_offset import GroupType, RecordedOffset, RecordingMark, SeenGroups, ordered
from ..values.topic import GROUPS_TABLE
from ..values.topic_partition import TopicPartition

if TYPE_CHECKING:
    from .groups_table import GroupsTable, Recording

logger = logging.getLogger(__name__)


class GroupsRecorded(Struct, frozen=True):
    """What is recorded of the groups of a keyspace by now."""

    groups: int  # those that have committed something; share groups too
    offsets: int
    is_new: bool  # False: nothing had changed, so nothing was written


class RestoredGroup(Struct, frozen=True):
    """A group that is back, or of which offsets are."""

    group_id: str
    group_type: GroupType
    offsets: tuple[RecordedOffset, ...]  # those that Redis did not have


class GroupRecorder:
    """Records the groups of one keyspace in a table. Any number may do so at once.

    What was recorded is told in Redis by a mark beside the list of groups. So one who finds that
    nothing has changed since asks no store, but for once in each run of the server; and where the
    mark is lost or an older one, Redis has lost groups: they are brought back before anything is
    recorded, so that no loss is ever recorded as the newest.

    Args:
        records: the groups in Redis.
        table: opens the table.
        keyspace_id: of the keyspace's creation; None while there is none.
        now_ms: Redis's clock.
    """

    def __init__(
        self,
        records: GroupRecords,
        table: Callable[[], GroupsTable],
        keyspace: str,
        keyspace_id: Callable[[], UUID | None],
        now_ms: Callable[[], int],
    ) -> None:
        self._records = records
        self._open = table
        self._keyspace = keyspace
        self._keyspace_id = keyspace_id
        self._now_ms = now_ms
        self._looked_in: str | None = None  # the server's run in which the table was looked at

    def record(self) -> GroupsRecorded:
        """Records what has changed since the last time, whoever did that; nothing: no write.

        Raises:
            ColdTierError: the table takes no commit, or cannot be read.
            HotTierUnavailableError: Redis does not answer.
        """
        from .groups_table import Recording  # a keeper without a cold root does without

        seen = self._records.read()
        mark = self._records.mark()
        keyspace_id = self._keyspace_id()
        was_never = mark is None and not seen.offsets
        run_id = self._records.run_id()
        is_done = is_recorded(seen, mark) and self._looked_in == run_id
        if keyspace_id is None or was_never or is_done:
            return _told(seen.offsets, is_new=False)
        table = self._open()
        there = table.read(keyspace_id)
        if has_lost(self._records.mark(), there):
            assert there is not None  # nothing is lost of nothing
            self._bring_back(there, there.offsets)
        elif there is not None and is_recorded(seen, mark):
            self._looked_in = run_id
            return _told(seen.offsets, is_new=False)
        # The number first: what is read after it is as new as the number says.
        taken = self._records.take(there.sequence if there else 0)
        failpoint("groups.after_take")
        now_ms = self._now_ms()
        seen = self._records.read()
        last = self._records.mark()
        if last is None or last.id != taken.id:
            logger.warning("groups were not recorded: Redis lost them while they were read")
            return _told(seen.offsets, is_new=False)
        offsets = to_record(seen, there)
        recording = Recording(self._keyspace, keyspace_id, taken.taken, now_ms, offsets)
        is_new = table.write(recording)
        if is_new:
            self._looked_in = run_id
            self._records.confirm(taken, seen.digest(), now_ms)
        return _told(offsets, is_new=is_new)

    def bring_back(self) -> list[RestoredGroup]:
        """Brings back what Redis has lost; what is there and newer stays, doing it again is safe.

        A group that was deleted since it was recorded stays deleted, unless Redis has lost that
        too.

        Raises:
            ColdTierError: the table cannot be read.
            HotTierUnavailableError: Redis does not answer.
        """
        keyspace_id = self._keyspace_id()
        there = None if keyspace_id is None else self._open().read(keyspace_id)
        if there is None:
            return []
        return self._bring_back(there, self._lost(there, self._records.read()))

    def restorable(
        self, keyspace_id: UUID | None, topic_ids: Collection[UUID]
    ) -> list[RestoredGroup]:
        """What `bring_back` would bring back, once the topics are there; changes nothing.

        Args:
            keyspace_id: of the keyspace as it comes back with its topics; None: nothing tells.
            topic_ids: the topics that will be there.

        Raises:
            ColdTierError: the table cannot be read.
            HotTierUnavailableError: Redis does not answer.
        """
        there = None if keyspace_id is None else self._open().read(keyspace_id)
        if there is None:
            return []
        seen = self._records.read()
        known = {_place(one): one for one in seen.offsets}
        return by_group(
            one
            for one in self._lost(there, seen)
            if is_newer(one, known.get(_place(one)))
            and (one.group_type is GroupType.CLASSIC or one.topic_id in topic_ids)
        )

    def _lost(self, there: Recording, seen: SeenGroups) -> Sequence[RecordedOffset]:
        """What is recorded and Redis may have lost."""
        if has_lost(self._records.mark(), there):
            return there.offsets
        return [one for one in there.offsets if _is_of(one, seen.missing)]

    def _bring_back(
        self, there: Recording, offsets: Iterable[RecordedOffset]
    ) -> list[RestoredGroup]:
        back = self._records.bring_back(offsets)
        failpoint("groups.before_mark")
        # Last: until here, whoever looks finds that something is lost.
        if has_lost(self._records.mark(), there):
            self._records.take(there.sequence)
        return by_group(back)


def by_group(offsets: Iterable[RecordedOffset]) -> list[RestoredGroup]:
    """The offsets of each group, in order."""
    found: dict[tuple[str, GroupType], list[RecordedOffset]] = {}
    for one in ordered(offsets):
        found.setdefault((one.group_id, one.group_type), []).append(one)
    return [RestoredGroup(*group, tuple(own)) for group, own in found.items()]


def is_newer(recorded: RecordedOffset, there: RecordedOffset | None) -> bool:
    """Whether an offset is put back in the place of what Redis has. A share group that is there
    stays.
    """
    if there is None:
        return True
    if recorded.group_type is GroupType.SHARE:
        return recorded.topic_id != there.topic_id
    return (there.committed_ms or 0) < (recorded.committed_ms or 0)


def _place(one: RecordedOffset) -> tuple[str, GroupType, TopicPartition]:
    return one.group_id, one.group_type, one.topic_partition


def is_recorded(seen: SeenGroups, mark: RecordingMark | None) -> bool:
    """Whether the last recording has all that."""
    return mark is not None and mark.digest == seen.digest()


def has_lost(mark: RecordingMark | None, there: Recording | None) -> bool:
    """Whether Redis knows less than what is recorded of it. The mark was read after the recording:
    a number is taken before it is recorded.
    """
    return there is not None and (mark is None or mark.taken < there.sequence)


def to_record(seen: SeenGroups, there: Recording | None) -> tuple[RecordedOffset, ...]:
    """What was seen, and what is recorded of groups that Redis should have and has not."""
    kept = [one for one in (there.offsets if there else ()) if _is_of(one, seen.missing)]
    return ordered((*seen.offsets, *kept))


def _is_of(one: RecordedOffset, groups: frozenset[str]) -> bool:
    return one.group_type is GroupType.CLASSIC and one.group_id in groups


def _told(offsets: Sequence[RecordedOffset], *, is_new: bool) -> GroupsRecorded:
    groups = {(one.group_id, one.group_type) for one in offsets}
    return GroupsRecorded(len(groups), len(offsets), is_new)


#: What an archiver has recorded is a minute old at most, also where a commit takes a while.
RECORD_INTERVAL_S = 30.0


class GroupKeeper:
    """Looks after the groups of one keyspace, beside the work of whoever runs anyway. Thread-safe.

    What fails keeps nothing from its work: it is logged, and tried again the next time. What groups
    have committed is in Redis all the same, but not under the cold root: `trouble` says so.

    Args:
        recorder: None where no cold root was given.
    """

    def __init__(
        self, admin: GroupAdmin, records: GroupRecords, recorder: GroupRecorder | None
    ) -> None:
        self._admin = admin
        self._records = records
        self._recorder = recorder
        self._lock = threading.Lock()
        self._attended_s = time.monotonic() - RECORD_INTERVAL_S
        self._thread: threading.Thread | None = None
        self._failure = ""
        self._trouble: Trouble | None = None

    def attend(self) -> None:
        """Do what is due. Raises nothing of lakelog's own."""
        failures = []
        for step in (self._expire, self._record):
            try:
                step()
            except LakelogError as error:
                failures.append(f"{type(error).__name__}: {error}")
        failure = "; ".join(failures)
        if failure and failure != self._failure:
            logger.warning("groups were not looked after, which is tried again: %s", failure)
        self._failure = failure

    def trouble(self) -> Trouble | None:
        """Why what groups have committed is not recorded under the cold root; None: it is.

        A Redis that does not answer is none: nothing is committed meanwhile.
        """
        from ..archive.supervisor import LONG_CALL_S

        with self._lock:
            found, since_s = self._trouble, self._attended_s
            hangs_s = time.monotonic() - since_s if self.is_in_call() else 0.0
        if found is None and hangs_s >= LONG_CALL_S:
            since_ms = time.time_ns() // 1_000_000 - round(1000 * hangs_s)
            said = "a call to Redis or the store does not return"
            found = Trouble(GROUPS_TABLE, since_ms, said, 0, None, NOT_RECORDED)
        return found

    def attend_now_and_then(self) -> None:
        """Do what is due every `RECORD_INTERVAL_S`, in a thread of its own, which may hang."""
        from ..engines.threads import watch

        with self._lock:
            now_s = time.monotonic()
            if now_s - self._attended_s < RECORD_INTERVAL_S or self.is_in_call():
                return
            self._attended_s = now_s
            self._thread = threading.Thread(target=self._run, name="lakelog-groups", daemon=True)
            watch(self)
            self._thread.start()

    def end(self) -> None:
        """See `threads.Crew`."""
        self._attended_s = float("inf")

    def is_in_call(self) -> bool:
        """See `threads.Crew`."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.attend()
        except Exception:
            logger.exception("groups were not looked after, which is tried again")

    def _expire(self) -> None:
        if self._records.expiry_is_due(self._admin.expiry_interval_ms):
            self._admin.expire_all_offsets()

    def _record(self) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder.record()
        except HotTierUnavailableError:
            raise
        except Exception as error:
            self._note(error)
            raise
        self._trouble = None

    def _note(self, error: Exception) -> None:
        before = self._trouble
        since_ms = before.since_ms if before else time.time_ns() // 1_000_000
        tries = before.tries + 1 if before else 1
        self._trouble = Trouble(GROUPS_TABLE, since_ms, why(error), tries, None, NOT_RECORDED)

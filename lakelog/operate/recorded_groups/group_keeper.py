"""What is due of groups now and then: expired offsets go, and the others are recorded."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from ...archive.report import NOT_RECORDED, Trouble, why
from ...errors import HotTierUnavailableError, LakelogError
from ...groups.admin import GroupAdmin
from ...groups.group_records import GroupRecords
from ...values.topic import GROUPS_TABLE

if TYPE_CHECKING:
    from .recorder import GroupRecorder


logger = logging.getLogger(__name__)

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
        from ...archive.supervisor import LONG_CALL_S

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
        from ...engines.threads import watch

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

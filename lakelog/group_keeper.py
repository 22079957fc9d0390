"""What is due of groups now and then: expired offsets go, and the others are recorded."""

from __future__ import annotations

import logging
import threading
import time

from .archive.at_exit import watch
from .errors import LakelogError
from .groups.admin import GroupAdmin
from .groups.group_records import GroupRecords
from .operate.recorded_groups.recorder import GroupRecorder

logger = logging.getLogger(__name__)

#: What an archiver has recorded is a minute old at most, also where a commit takes a while.
RECORD_INTERVAL_S = 30.0


class GroupKeeper:
    """Looks after the groups of one keyspace, beside the work of whoever runs anyway. Thread-safe.

    What fails keeps nothing from its work: it is logged, and tried again the next time.

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

    def attend_now_and_then(self) -> None:
        """Do what is due every `RECORD_INTERVAL_S`, in a thread of its own, which may hang."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._attended_s < RECORD_INTERVAL_S or self.is_in_call():
                return
            self._attended_s = now_s
            self._thread = threading.Thread(target=self._run, name="lakelog-groups", daemon=True)
            watch(self)
            self._thread.start()

    def end(self) -> None:
        """See `at_exit.Crew`."""
        self._attended_s = float("inf")

    def is_in_call(self) -> bool:
        """See `at_exit.Crew`."""
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
        if self._recorder is not None:
            self._recorder.record()

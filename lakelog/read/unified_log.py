"""A log whose hot tier is Redis: everything that changes it except appends."""

from __future__ import annotations

from contextlib import suppress

from ..cold.change import Change
from ..cold.registers import LogStart
from ..cold.reserve import reserving
from ..cold.table import ColdTable
from ..errors import (
    ColdTierError,
    CommitConflictError,
    ContradictionError,
    ForeignTableError,
    HotTierUnavailableError,
    PolicyViolationError,
    RecoveryNeededError,
)
from ..hot.hot_log import HotLog
from ..values.arguments import whole
from ..values.offsets import check_offset
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .tiers import Look, out_of_range
from .topic_log import TopicLog

END_OF_LOG = -1  # how delete-records names the log end (Kafka's HIGH_WATERMARK)
_ATTEMPTS = 10  # commits of other partitions may come first


class UnifiedLog(TopicLog):
    """A `TopicLog` with its Redis: records can be deleted, and partitions recovered."""

    hot: HotLog

    # -- changing --------------------------------------------------------------------------------

    def raise_log_start(self, partition: int, offset: int) -> int:
        """Delete the records below an offset, and return the log start offset after that.

        They become unreadable at once; cleanup removes their files later. A log start only grows,
        so a lower offset changes nothing.

        Args:
            offset: the first to keep; -1 for the log end (delete all).

        Raises:
            OffsetOutOfRangeError: past the log end, or negative other than -1.
            PolicyViolationError: the topic is compacted without ``delete``.
            ArchivedElsewhereError: another table is the topic's, and may be away; nothing changed.
            CommitConflictError: others kept committing to the cold tier; repeat the call.
        """
        topic_partition = self.topic.partition(partition)
        for _ in range(_ATTEMPTS):
            topic = self._deletable()
            look, start = self._raised_log_start(topic_partition, offset)
            # Register first: records that are no longer hot must by then be known as deleted.
            if self._tiers.table is None:
                break
            self.hot.archived_into().settle(topic, self._tiers.table)
            if look.cold.log_start(partition) >= start:
                break
            change = Change(
                registers={LogStart(partition): start}, config_version=topic.config_version
            )
            if not self._tiers.table.apply(change, look.cold).superseded:
                break
        else:
            raise CommitConflictError(
                f"the log start of {topic_partition} could not be raised: others changed its "
                "registers or the topic's settings each time. Nothing was deleted; repeat the call",
                topic_partition=topic_partition,
            )
        self.hot.raise_log_start(topic_partition, start, topic_id=self.topic.topic_id)
        return start

    def records_below(self, partition: int, offset: int) -> int:
        """How many records `raise_log_start` would delete now; it takes and raises the same.

        Counted by the segment index: of the cold files, only the offsets of one that is deleted in
        part are read.
        """
        topic_partition = self.topic.partition(partition)
        self._deletable()
        look, end = self._raised_log_start(topic_partition, offset)
        return self._counted(look, topic_partition.partition, 0, end)

    def recover(self, partition: int, at_least: int, *, waits: bool = True) -> None:
        """Make a partition writable again after its server may have lost its tail.

        Args:
            at_least: one past the highest offset the caller was told of. What the cold tier knows
                is added here, so that no offset is ever used twice.
            waits: whether to wait, two minutes at most, while somebody else takes its server over.

        Raises:
            ConcurrentChangeError: somebody else takes it over; retriable.
            RecoveryNeededError: the cold tier cannot be reached, and only it can tell where the
                partition goes on; retriable. An archiver settles it too.
        """
        topic_partition, at_least = self.topic.partition(partition), check_offset(at_least)
        table = self._tiers.current_table([topic_partition])
        if table is None:
            self.hot.recover(topic_partition, at_least, topic_id=self.topic.topic_id, waits=waits)
            return
        try:
            self._settle(self.topic, table)
            cold = self._tiers.cold()
            known = max(at_least, cold.archive_start(partition))
            self.hot.recover(
                topic_partition,
                known,
                reserving(self.topic, table, self._settle),
                topic_id=self.topic.topic_id,
                waits=waits,
            )
        except (ContradictionError, ForeignTableError):
            raise
        except ColdTierError as error:
            raise RecoveryNeededError(
                f"the server of {topic_partition} may have lost its tail, or all its offsets are "
                "given out, and only the cold tier says where it can go on, which cannot be "
                f"used now: {error.message}",
                topic_partition=topic_partition,
            ) from error

    # -- how -------------------------------------------------------------------------------------

    def _settle(self, topic: Topic, table: ColdTable) -> None:
        """Offsets that another table reserved could be given out again by the topic's own.

        Raises:
            ArchivedElsewhereError: another one is the topic's.
        """
        # Another server may know, and not answer now. None is made then (see `making`), and
        # archivers ask, too.
        with suppress(HotTierUnavailableError):
            self.hot.archived_into().settle(topic, table)

    def _deletable(self) -> Topic:
        """The topic as it is now, not as it was when this log was opened.

        Raises:
            PolicyViolationError: it is compacted without ``delete``.
            UnknownTopicIdError: it was dropped.
        """
        # An untiered topic has no such policy. A commit to the cold tier can meet one that was set
        # since, and it is then refused.
        topic = self.hot.topics().renewed(self.topic)
        if topic.config["cleanup.policy"] == {"compact"}:
            raise PolicyViolationError(
                f"records of topic {topic.name!r} cannot be deleted by offset: its "
                "cleanup.policy is compact, which keeps the latest record of each key. Write "
                "tombstones, or set cleanup.policy=compact,delete",
                topic=topic.name,
            )
        return topic

    def _raised_log_start(self, topic_partition: TopicPartition, offset: int) -> tuple[Look, int]:
        """The log start after deleting the records below an offset, and the look that shows it."""
        number = whole(offset)
        offset = check_offset(offset) if number is None or number >= 0 else number
        look = self._tiers.look([topic_partition.partition])
        offsets = look.offsets[topic_partition.partition]
        start = offsets.log_end if offset == END_OF_LOG else offset
        if not 0 <= start <= offsets.log_end:
            do = f"Delete before an offset up to {offsets.log_end}, or before -1, which is that end"
            out_of_range(topic_partition, start, offsets, do)
        return look, max(start, offsets.log_start)

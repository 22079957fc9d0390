"""Every error lakelog raises: what was asked, what holds, what to do.

Each class carries the values of its sentence as attributes (``error.offset``), a ``retriable`` flag
(the same call may succeed later, unchanged), and survives pickling, since it crosses Spark workers.
Where a Kafka error code says the same thing, the class takes its name.
"""

from __future__ import annotations

from typing import Any, ClassVar


class LakelogError(Exception):
    """Base of all errors. Keyword arguments become attributes of the instance."""

    retriable: ClassVar[bool] = False

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:  # tells type checkers that fields are attributes
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(cls: type[LakelogError], message: str, fields: dict[str, Any]) -> LakelogError:
    return cls(message, **fields)


# -- what the caller asked for is not legal ----------------------------------------------------


class InvalidArgumentError(LakelogError, ValueError):
    """A value outside what the call takes (a naive datetime, a negative offset, an odd URL)."""


class InvalidTopicError(InvalidArgumentError):
    """A topic name against Kafka's rule, or a partition count below one."""


class InvalidConfigError(InvalidArgumentError):
    """An unknown setting, or a value outside its bounds; the message names the legal ones."""


class MissingExtraError(LakelogError, ImportError):
    """A package of an optional extra is not installed; the message has the pip command."""


# -- topics ------------------------------------------------------------------------------------


class UnknownTopicOrPartitionError(LakelogError, KeyError):
    """No such topic, or it has fewer partitions."""

    __str__ = LakelogError.__str__


class TopicExistsError(LakelogError):
    """A topic of that name is there already."""


class UnknownTopicIdError(LakelogError):
    """The topic was dropped (and perhaps created again) since the caller looked it up."""


class ConcurrentConfigChangeError(LakelogError):
    """Somebody else altered the topic between the look and the change."""

    retriable = True


class ConcurrentChangeError(LakelogError):
    """Others changed what was to be changed, each time; nothing was done."""

    retriable = True


class PolicyViolationError(LakelogError):
    """The topic's policy forbids what was asked."""


# -- append ------------------------------------------------------------------------------------


class RecordTooLargeError(LakelogError, ValueError):
    """A record, or the entry that holds it, is larger than ``max.message.bytes``, or, decompressed,
    than ``lakelog.max.decoded.bytes``.
    """


class InvalidTimestampError(LakelogError, ValueError):
    """Timestamps outside the topic's bounds; the whole call is rejected.

    ``record_errors`` lists ``(index in the call, timestamp_ms, reason)``.
    """


class InvalidRecordError(LakelogError, ValueError):
    """A record the topic cannot hold (no key on a compacted topic), or that cannot be encoded.

    ``index`` says which.
    """


class OutOfOrderSequenceError(LakelogError):
    """The call's sequence does not follow the producer's last one on this partition."""


class UnknownProducerError(LakelogError):
    """Redis no longer knows this producer, so a resend cannot be told from a new call."""


class RepeatDiffersError(LakelogError):
    """Work repeated under the numbers of an earlier attempt has other records than that had."""


class ProducerFencedError(LakelogError):
    """A newer epoch of this producer id has written to the partition."""


class HotTierFullError(LakelogError):
    """Redis is at ``maxmemory``; nothing was written. Archiving and trimming make room."""

    retriable = True


class HotTierUnavailableError(LakelogError, ConnectionError):
    """Redis did not answer. ``sent`` says whether the command may have reached it."""

    retriable = True


class HotTierPausedError(LakelogError):
    """The hot tier is paused for a planned stop."""

    retriable = True


class HotTierAccessError(LakelogError, PermissionError):
    """Redis answered but refuses: wrong password, missing ACL right, read-only replica."""


class RecoveryNeededError(LakelogError):
    """The server restarted or failed over since the partition was last written.

    ``HotLog.recover`` settles it; until then nothing is appended.
    """

    retriable = True


class NotEnoughReplicasError(LakelogError):
    """Written, but fewer replicas than asked for confirmed it: whether it survives is unknown."""


class DeliveryError(LakelogError):
    """A record was not delivered in time.

    ``not_written`` counts records that are surely not in the log, ``unknown`` those that may be.
    """


class BufferExhaustedError(LakelogError, TimeoutError):
    """The producer's buffer stayed full for ``max_block_ms``; the record was not taken."""

    retriable = True


class ProducerClosedError(LakelogError, RuntimeError):
    """The producer was closed, or belongs to a parent process of this one."""


# -- read --------------------------------------------------------------------------------------


class OffsetOutOfRangeError(LakelogError, LookupError):
    """An offset below the log start or past the log end. Fields: topic_partition, offset,
    log_start, log_end.
    """


class TrimmedError(LakelogError):
    """The hot tier no longer holds the offset; ``local_log_start`` is the first it holds."""


class CorruptRecordError(LakelogError):
    """Stored bytes are not what was written (CRC, length, count). Fields: topic_partition (once
    known), entry_id or path.
    """


class ForeignEntryError(CorruptRecordError):
    """An entry of the stream was not written by lakelog, or the key is not a stream."""


class NoOffsetForPartitionError(LakelogError, LookupError):
    """No position and ``auto_offset_reset='none'``."""


# -- cold --------------------------------------------------------------------------------------


class ColdTierError(LakelogError):
    """The cold root cannot be used as asked (not writable, no Delta table where one must be)."""


class ColdTierUnavailableError(ColdTierError):
    """The store does not answer, is busy (429, 503) or failed (500): later it may not."""

    retriable = True


class ColdTierFullError(ColdTierError):
    """The disk of the cold root, or its quota, has no room left. What room is made ends that."""

    retriable = True


class ColdTierAccessError(ColdTierError, PermissionError):
    """The store answers but refuses: wrong or expired credentials, a missing right."""

    __str__ = LakelogError.__str__


class ForeignTableError(ColdTierError):
    """The path holds a Delta table that is not this topic's."""


class ContradictionError(ColdTierError):
    """Facts that must agree do not (registers, files, offsets): someone RESTOREd, deleted files
    or wrote by hand. The work stops; nothing was changed.
    """


class MissingFileError(ColdTierError, FileNotFoundError):
    """The table names a Parquet file that is not there."""

    __str__ = LakelogError.__str__


class CommitConflictError(ColdTierError):
    """Others kept committing; nothing of this change was committed."""

    retriable = True


class CommitUnknownError(ColdTierError):
    """The store did not say whether it took the commit, and reading back failed too."""

    retriable = True


class ArchiveUnfinishedError(LakelogError):
    """A continuous run ended before all was archived; what is left is in Redis. Fields: troubles,
    one a topic; abandoned: some call did not return in time and was left alone.
    """


class ArchiveStalledError(LakelogError):
    """A topic made no progress for longer than the job allows. Field: troubles, one a topic."""


class CleanupFailedError(LakelogError):
    """Some of a cleanup could not be done, the rest was. Field: reports, one a topic."""


class EmbeddedRedisError(LakelogError, RuntimeError):
    """The embedded Redis could not be started, found or stopped. Field: directory."""


class SparkUnavailableError(LakelogError, RuntimeError):
    """Spark cannot be started here: its Delta jars cannot be fetched, or Java refuses."""

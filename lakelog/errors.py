"""Every error lakelog raises: what was asked, what holds, what to do.

Each class declares the values of its sentence as fields (``error.offset``); what is not a field of
a class is refused, by its constructor and by a type checker. A field that the sentence may lack is
None then. Each has a ``retriable`` flag (the same call may succeed later, unchanged), and survives
pickling, since it crosses Spark workers. Where a Kafka error code says the same thing, the class
takes its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from uuid import UUID

    from typing_extensions import Self, dataclass_transform

    from .values.topic_partition import OffsetRange, TopicPartition


if not TYPE_CHECKING:

    def dataclass_transform(**_: Any) -> Any:
        """For type checkers; Python has it from 3.11 on."""
        return lambda cls: cls


def _field(*, kw_only: bool) -> Any:
    """How a field is given: by its name, or by its place."""


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(_field,))
class _WithFields(Exception):
    """An exception whose annotations are fields, as those of a dataclass are.

    No code is made for each class, as there are many, and every command begins with them.
    """

    field_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = dict.fromkeys((*cls.field_names, *cls.__annotations__))
        cls.field_names = tuple(name for name in own if name != "retriable")


class LakelogError(_WithFields):
    """Base of all errors.

    Args:
        message: the sentence, which is also the error's text.
        batch: what became of each record, if the error ended `Producer.send_batch`.
    """

    retriable: ClassVar[bool] = False

    message: str = _field(kw_only=False)
    batch: Any = None  # a `BatchOutcome`

    if not TYPE_CHECKING:  # which knows each class's own from its fields

        def __init__(self, message: str, **given: Any) -> None:
            cls = type(self)
            for name in given.keys() - set(cls.field_names):
                raise TypeError(f"{cls.__name__} has no field {name!r}")
            for name in cls.field_names:
                if name not in given and not hasattr(cls, name):
                    raise TypeError(f"{cls.__name__} needs the field {name!r}")
            super().__init__(message)
            self.__dict__.update(given, message=message)

    def __str__(self) -> str:  # KeyError and OSError have others
        return self.message

    @property
    def fields(self) -> Mapping[str, Any]:
        """The values of the sentence by name, those that were given."""
        named = ((name, vars(self).get(name)) for name in self.field_names)
        return {name: value for name, value in named if name != "message" and value is not None}

    def changed(self, **changes: Any) -> Self:
        """The same error with other values of some fields."""
        return type(self)(**{"message": self.message, **self.fields, **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(cls: type[LakelogError], message: str, fields: dict[str, Any]) -> LakelogError:
    return cls(message, **fields)


def by_topic(errors: Mapping[str, LakelogError | Sequence[LakelogError]]) -> str:
    """What the errors of several topics say, in one sentence without its full stop."""
    several = ((topic, [e] if isinstance(e, LakelogError) else e) for topic, e in errors.items())
    said = [f"{topic}: {error.message.rstrip('.')}" for topic, found in several for error in found]
    more = f"; and {len(said) - 3} more" if len(said) > 3 else ""
    return "; ".join(said[:3]) + more


# -- what the caller asked for is not legal ----------------------------------------------------


class InvalidArgumentError(LakelogError, ValueError):
    """A value outside what the call takes (a naive datetime, a negative offset, an odd URL)."""

    topic: str | None = None
    path: str | None = None
    entry_id: Any = None  # an `EntryId`, or its text
    offset: int | None = None  # of a range, its start
    end_offset: int | None = None
    name: str | None = None  # of the parameter or setting
    value: object = None  # what was given for it
    group_id: str | None = None


class InvalidTopicError(InvalidArgumentError):
    """A topic name against Kafka's rule, or a partition count below one."""

    partitions: object = None  # what was given


class InvalidConfigError(InvalidArgumentError):
    """An unknown setting, or a value outside its bounds; the message names the legal ones."""

    column: str | None = None
    position: int | None = None  # in the value, where reading it ended


class MissingExtraError(LakelogError, ImportError):
    """A package of an optional extra is not installed; the message has the pip command."""


class NewerVersionError(LakelogError):
    """A newer lakelog wrote it: nothing was read, and nothing is deleted, until this one is newer.

    It never stands for damage: nothing of this kind is skipped.
    """

    topic: str | None = None
    topic_partition: TopicPartition | None = None
    entry_id: Any = None  # an `EntryId`, or its text
    path: str | None = None


# -- topics ------------------------------------------------------------------------------------


class UnknownTopicOrPartitionError(LakelogError, KeyError):
    """No such topic, or it has fewer partitions."""

    topic: str | None = None
    partition: int | None = None


class AmbiguousTopicError(LakelogError):
    """Several keyspaces have a topic of that name under one cold root; the message lists them."""

    topic: str
    path: str | None = None


class TopicExistsError(LakelogError):
    """A topic of that name is there already; or the keyspace, into which a lost one is to come
    back, has topics of its own.
    """

    topic: str
    keyspace: str | None = None  # that has topics of its own


class TenantError(LakelogError):
    """There is no such tenant, or one of that name already, or it has topics that nobody said may
    be deleted with it.
    """

    tenant: str
    topics: Sequence[str] = ()


class UnknownTopicIdError(LakelogError):
    """The topic was dropped (and perhaps created again) since the caller looked it up."""

    topic: str | None = None
    topic_id: UUID | None = None


class ConcurrentChangeError(LakelogError):
    """Others changed what was to be changed, each time, or one is at it; nothing was done."""

    retriable = True

    topic: str | None = None
    keyspace: str | None = None  # whose defaults they changed
    entry_id: Any = None  # an `EntryId`, or its text
    holder: str | None = None  # of a lock: the process that has it
    until_ms: int | None = None  # when it ends if its holder has died


class PolicyViolationError(LakelogError):
    """The topic's policy, or its state, forbids what was asked: a deleted topic that is being
    removed cannot come back, and a partition that has given out its last offset takes no records.
    """

    topic: str | None = None
    topic_id: UUID | None = None
    topic_partition: TopicPartition | None = None
    log_end: int | None = None
    path: str | None = None
    entry_id: Any = None  # an `EntryId`, or its text


class PartlyFailedError(LakelogError):
    """Some of what was asked could not be done, the rest was: both are in the fields, each of which
    only the calls set that have such a thing to tell.
    """

    errors: Mapping[str, Any] = MappingProxyType({})  # by topic, or by place in a file: one or some
    failures: Sequence[Any] = ()  # of a cleanup: `Failure`s
    reports: Sequence[Any] = ()  # `ArchiveReport`s or `CleanupReport`s, one a topic
    report: Any = None  # an `Erased`
    changes: Sequence[Any] = ()  # `TopicChange`s that were made
    restored: Sequence[Any] = ()  # `RestoredTopic`s
    groups: Sequence[Any] = ()  # `RestoredGroup`s
    topic: str | None = None


# -- append ------------------------------------------------------------------------------------


class RecordTooLargeError(LakelogError, ValueError):
    """A record, or the entry that holds it, is larger than ``max.message.bytes``, or, decompressed,
    than ``lakelog.max.decoded.bytes``.
    """

    index: int  # of the record, in the call
    size_bytes: int
    topic_partition: TopicPartition | None = None
    limit_bytes: int | None = None
    decoded_bytes: int | None = None
    max_entry_bytes: int | None = None
    max_decoded_bytes: int | None = None


class InvalidTimestampError(LakelogError, ValueError):
    """Timestamps outside the topic's bounds; the whole call is rejected.

    ``record_errors`` lists ``(index in the call, timestamp_ms, reason)``.
    """

    record_errors: Sequence[tuple[int, int, str]] = ()
    topic_partition: TopicPartition | None = None
    now_ms: int | None = None
    before_max_ms: int | None = None
    after_max_ms: int | None = None


class InvalidRecordError(LakelogError, ValueError):
    """A record the topic cannot hold (no key on a compacted topic), or that cannot be encoded.

    ``index`` says which.
    """

    index: int
    topic_partition: TopicPartition | None = None


class OutOfOrderSequenceError(LakelogError):
    """The call's sequence does not follow the producer's last one on this partition."""

    expected: int
    sequence: int | None = None
    topic_partition: TopicPartition | None = None


class UnknownProducerError(LakelogError):
    """Redis no longer knows this producer, so a resend cannot be told from a new call."""

    topic_partition: TopicPartition | None = None
    sequence: int | None = None


class RepeatDiffersError(LakelogError):
    """Work repeated under the numbers of an earlier attempt has other records than that had.

    Or how far that attempt came is not known any more (``is_cut``).
    """

    topic_partition: TopicPartition | None = None
    sequence: int | None = None
    is_cut: bool | None = None


class ProducerFencedError(LakelogError):
    """A newer epoch of this producer id has written to the partition."""

    topic_partition: TopicPartition | None = None
    epoch: int | None = None
    current_epoch: int | None = None


class HotTierFullError(LakelogError):
    """Redis is at ``maxmemory``, or so near that calls are held back; nothing was written.

    Archiving and trimming make room.
    """

    retriable = True

    where: str | None = None


class QuotaExceededError(LakelogError):
    """A quota of the keyspace is used up; nothing was done. It passes when something is freed."""

    retriable = True

    quota: str  # the setting
    used: int
    limit: int
    topic: str | None = None


class ThrottlingQuotaExceededError(LakelogError):
    """More was appended than a quota of bytes a second allows; nothing of the call was written.

    A producer waits by itself, within ``delivery_timeout_ms``.
    """

    retriable = True

    quota: str  # the setting
    throttle_time_ms: int  # until the same call may succeed
    limit: int | None = None
    topic: str | None = None


class HotTierUnavailableError(LakelogError, ConnectionError):
    """Redis did not answer. ``sent`` says whether the command may have reached it."""

    retriable = True

    sent: bool = False
    run_id: str | None = None  # the run of the server that it was sent to
    moved: bool = False  # a cluster node says that the key is elsewhere


class LogClosedError(LakelogError, RuntimeError):
    """The log or the producer was closed, or belongs to a process of which this one is a fork: open
    another.
    """


class HotTierPausedError(LakelogError):
    """The hot tier is paused for a planned stop."""

    retriable = True

    topic_partition: TopicPartition | None = None


class HotTierAccessError(LakelogError, PermissionError):
    """Redis answered but refuses: wrong password, missing ACL right."""

    where: str | None = None


class RecoveryNeededError(LakelogError):
    """The server restarted or failed over since the partition was last written.

    ``HotLog.recover`` settles it; until then nothing is appended.
    """

    retriable = True

    topic_partition: TopicPartition | None = None
    offset: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    reserved_end: int | None = None


class NotEnoughReplicasError(LakelogError):
    """The server has fewer replicas online than asked for; nothing was written."""

    retriable = True

    topic_partition: TopicPartition | None = None
    replicas: int | None = None  # online


class NotEnoughReplicasAfterAppendError(LakelogError):
    """Written, but fewer replicas than asked for confirmed it: whether it survives is unknown."""

    result: Any  # an `AppendResult`
    replicas: int


class DeliveryError(LakelogError):
    """A record was not delivered in time.

    ``not_written`` counts records that are surely not in the log, ``unknown`` those that may be.
    """

    not_written: int = 0
    unknown: int = 0
    last_error: Exception | None = None
    topic_partition: TopicPartition | None = None


class DeliveryPendingError(LakelogError, TimeoutError):
    """No answer came within the time that the caller gave; the records are still being delivered.

    ``unsettled`` counts them.
    """

    retriable = True

    unsettled: int
    topic_partition: TopicPartition | None = None


class BufferExhaustedError(LakelogError, TimeoutError):
    """The producer's buffer stayed full for ``max_block_ms``; the record was not taken."""

    retriable = True

    size_bytes: int
    buffered_bytes: int


# -- read --------------------------------------------------------------------------------------


class OffsetOutOfRangeError(LakelogError, LookupError):
    """An offset below the log start or past the log end."""

    topic_partition: TopicPartition
    offset: int
    log_start: int | None = None
    log_end: int | None = None


class TrimmedError(LakelogError):
    """The hot tier no longer holds the offset; ``local_log_start`` is the first it holds."""

    local_log_start: int
    offset: int | None = None
    topic_partition: TopicPartition | None = None


class CorruptRecordError(LakelogError):
    """Stored bytes are not what was written (CRC, length, count), or an export is unfinished.

    Of the hot tier it names the entry, and the topic-partition once that is known; of the cold one
    and of an export the file.
    """

    topic_partition: TopicPartition | None = None
    entry_id: Any = None  # an `EntryId`, or its text
    path: str | None = None
    offset: int | None = None  # where records are missing, the first of them
    end_offset: int | None = None


class EncryptionKeyError(LakelogError):
    """The key that a topic's values are encrypted under cannot be had here, or is another one."""

    topic: str | None = None
    reference: str | None = None  # where the key should be


class DecryptionError(LakelogError, ValueError):
    """A stored value is not what was encrypted there: changed, moved, or under an unknown key."""

    row: int | None = None  # of the records at hand
    topic_partition: TopicPartition | None = None
    offset: int | None = None


class ForeignEntryError(CorruptRecordError):
    """An entry of the stream was not written by lakelog, or the key is not a stream."""

    key: str | None = None


class NoOffsetForPartitionError(LakelogError, LookupError):
    """No position and ``auto_offset_reset='none'``."""

    topic_partition: TopicPartition


class RecordDeserializationError(LakelogError, ValueError):
    """A consumer's deserializer failed; its position is that of the record."""

    topic_partition: TopicPartition
    offset: int


# -- groups ------------------------------------------------------------------------------------


class GroupError(LakelogError):
    """Base of what a group of consumers answers. What is raised says more."""

    group_id: str | None = None


class GroupIdNotFoundError(GroupError, KeyError):
    """There is no such group."""


class NonEmptyGroupError(GroupError):
    """The group has members, which must leave first."""

    members: Sequence[str] = ()


class GroupSubscribedToTopicError(GroupError):
    """Members of the group read the topic."""

    topic: str


class UnknownMemberIdError(GroupError):
    """The member is not in the group: its session ended, it left, or it never joined."""

    member_id: str | None = None


class MemberIdRequiredError(GroupError):
    """To join, call again with the id that was given out (``member_id``)."""

    retriable = True

    member_id: str


class IllegalGenerationError(GroupError):
    """The member speaks of a generation that is over."""

    member_id: str | None = None
    generation_id: int | None = None


class CommitFailedError(GroupError):
    """Nothing was committed: the partitions may be another member's by now."""

    member_id: str | None = None
    generation_id: int | None = None


class RebalanceInProgressError(GroupError):
    """The group shares its partitions out anew; the member has to join again."""

    retriable = True

    member_id: str | None = None


class FencedInstanceIdError(GroupError):
    """Another member has joined under the instance id since."""

    instance_id: str | None = None
    member_id: str | None = None


class FencedMemberEpochError(GroupError):
    """The member is not in the epoch that it says: it gives its partitions up and joins again."""

    member_id: str | None = None
    member_epoch: int | None = None


class StaleMemberEpochError(GroupError):
    """The member has come to another epoch since: its next heartbeat tells which."""

    member_id: str | None = None
    member_epoch: int | None = None


class UnreleasedInstanceIdError(GroupError):
    """Another member has the instance id, and has not left."""

    instance_id: str | None = None
    member_id: str | None = None


class UnsupportedAssignorError(GroupError, ValueError):
    """The server has no assignor of that name."""

    assignor: str


class InvalidRegularExpressionError(GroupError, ValueError):
    """The regular expression for topics is none."""

    regex: str


class InconsistentGroupProtocolError(GroupError):
    """The member and the others of the group have no assignor in common."""

    protocols: Sequence[str] = ()


class InvalidSessionTimeoutError(GroupError, ValueError):
    """The session time-out is out of its bounds."""

    session_timeout_ms: int


class GroupMaxSizeReachedError(GroupError):
    """The group has as many members as it may have."""

    max_size: int


class OffsetMetadataTooLargeError(GroupError, ValueError):
    """The text beside an offset is too long; nothing was committed."""

    topic_partition: TopicPartition
    size_bytes: int


class InvalidRecordStateError(GroupError):
    """Acknowledgements that cannot be taken: the member does not hold the records (any more), or
    the share-partition would be cut into too many pieces; see the message.
    """

    topic_partition: TopicPartition
    offsets: Sequence[OffsetRange] = ()  # that it does not hold
    max_ranges: int | None = None


class SchemaError(GroupError, ValueError):
    """What a member of a group sent is not in the bytes of Kafka's consumer protocol."""

    size_bytes: int


# -- cold --------------------------------------------------------------------------------------


class ColdTierError(LakelogError):
    """Base of what the cold tier answers. What is raised says more: away, full, refused or wrong.

    ``path`` is of the table or file, or the table's name.
    """

    topic: str | None = None
    topic_partition: TopicPartition | None = None
    path: str | None = None


class ColdTierUnavailableError(ColdTierError):
    """Away: the store does not answer, is busy (429, 503) or failed (500). Later it may not."""

    retriable = True


class ColdTierFullError(ColdTierError):
    """The disk of the cold root, or its quota, has no room left. What room is made ends that."""

    retriable = True


class ColdTierRefusedError(ColdTierError):
    """The cold tier cannot be used as asked, and waiting will not change that: no Delta table where
    one must be, a table feature lakelog cannot read, a refusal of the store.
    """


class ColdTierAccessError(ColdTierRefusedError, PermissionError):
    """The store answers but refuses: wrong or expired credentials, a missing right."""


class ForeignTableError(ColdTierError):
    """The path holds a Delta table that is not this topic's."""

    name: str | None = None  # in the catalog


class ArchivedElsewhereError(ColdTierError):
    """The topic is archived into another table, which may be away: a topic has one. Nothing was
    changed here.
    """

    topic: str | None = None
    where: str | None = None  # the other one


class ContradictionError(ColdTierError):
    """Facts that must agree do not (registers, files, offsets): someone RESTOREd, deleted files
    or wrote by hand. The work stops; nothing was changed.
    """

    log_start: int | None = None
    local_log_start: int | None = None
    archived_end: int | None = None
    log_end: int | None = None
    covered: OffsetRange | None = None
    missing: OffsetRange | None = None
    offset: int | None = None
    offsets: object = None
    column: str | None = None


class MissingFileError(ColdTierError, FileNotFoundError):
    """The table names a Parquet file that is not there."""

    path: str


class CommitConflictError(ColdTierError):
    """Others kept committing; nothing of this change was committed."""

    retriable = True


class CommitUnknownError(ColdTierError):
    """The store did not say whether it took the commit, and reading back failed too."""

    retriable = True


# -- archiving, cleaning up, and what they run on ----------------------------------------------


class ArchiveUnfinishedError(LakelogError):
    """A continuous run ended before all was archived, or a job's topic made no progress for too
    long; what is left is in Redis.
    """

    troubles: Sequence[Any]  # `Trouble`s, one a topic
    abandoned: bool = False  # some call did not return in time and was left alone


class EmbeddedRedisError(LakelogError, RuntimeError):
    """The embedded Redis could not be started, found or stopped."""

    directory: str
    disk: str | None = None  # why its disk takes nothing: it is full, or read-only


class SparkUnavailableError(LakelogError, RuntimeError):
    """Spark cannot be started here: its Delta jars cannot be fetched, or Java refuses."""


# -- earlier names, for whoever catches them ---------------------------------------------------

InvalidGroupIdError = InvalidArgumentError
KeyspaceInUseError = TopicExistsError
UnknownTenantError = TenantExistsError = TenantNotEmptyError = TenantError
TopicPurgedError = OffsetsExhaustedError = PolicyViolationError
ConcurrentConfigChangeError = ConcurrentChangeError
ForkedProcessError = ProducerClosedError = LogClosedError
TooManyRangesError = InvalidRecordStateError
CorruptExportError = CorruptRecordError
ArchiveFailedError = CleanupFailedError = EraseFailedError = PartlyFailedError
ApplyFailedError = RestoreFailedError = PartlyFailedError
ArchiveStalledError = ArchiveUnfinishedError

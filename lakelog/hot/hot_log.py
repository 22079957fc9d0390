"""The hot tier: a Redis Stream for each topic-partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct

from ..base.clock import Clock
from ..base.once_a_process import OnceAProcess
from ..base.secret_reference import resolve_secret
from ..errors import RecoveryNeededError, UnknownTopicOrPartitionError
from ..values.offsets import HotOffsets
from ..values.tenant_name import tenant_keyspace
from ..values.topic import STATUS_TABLE, Topic
from ..values.topic_partition import TopicPartition
from .activity import Beats, Cleanups
from .appender import Appender
from .archived_into import ArchivedIntoRegister, OpenedTable, check_own
from .connection import Servers, connect
from .fetch import Fetcher
from .inspection import Inspection
from .keys import DEFAULT_KEYSPACE, KeptKeys, Keys
from .lock import Lock
from .looks import Looks
from .mending import Mending, Rebuilding
from .quotas import Allowances, ColdQuota
from .recovery import Recovery, Reserve
from .redis_url import mask
from .registry import Copies, TopicRegistry
from .server_info import Persistence, rewrite_persistence
from .skip import HotSkips
from .tenants import TenantRegister
from .trimmer import Trimmer
from .waits import Waits

if TYPE_CHECKING:
    from .asynchronous import AsyncHotLog


class HotLog:
    """The streams of one keyspace, composed of those who do the work.

    | who         | does                                                                           |
    |-------------|--------------------------------------------------------------------------------|
    | `Appender`  | appends calls of producers                                                     |
    | `Looks`     | says where partitions begin and end, their segments, what servers say          |
    | `Fetcher`   | reads entries by offset, finds records by time                                 |
    | `Waits`     | waits for what is appended                                                     |
    | `Trimmer`   | drops records, by archivers' word or by retention                              |
    | `Recovery`  | settles a server that lost its tail, and planned stops of it                   |

    Thread-safe. Every error of Redis comes out as one of lakelog's; see `refusals.translate`.

    Args:
        servers: from `connection.connect`.
        keyspace: what the keys begin with.
        clock: only for tests; without one the scripts ask Redis for the time.
    """

    def __init__(
        self, servers: Servers, keyspace: str = DEFAULT_KEYSPACE, clock: Clock | None = None
    ) -> None:
        self._servers = servers
        self._keys = Keys(keyspace)
        self._clock = clock
        looks = self._looks = Looks(servers, self._keys, clock)
        waits = Waits(servers, self._keys, looks)
        fetcher = Fetcher(servers, self._keys, looks, waits)
        trimmer = Trimmer(servers, self._keys, clock)
        recovery = self._recovery = Recovery(servers, self._keys, clock)
        allowances = Allowances(servers, self._keys, self.topics().list, clock)
        appender = Appender(servers, self._keys, clock, allowances, recovery)
        self._appender, self._fetcher = appender, fetcher
        # Theirs, by the same names.
        self.append, self.append_all = appender.append, appender.append_all
        self.offsets, self.segments, self.now_ms = looks.offsets, looks.segments, looks.now_ms
        self.servers, self.server_looks = looks.servers, looks.server_looks
        self.server_name, self.server_names = looks.server_name, looks.server_names
        self.memory_bytes, self.memory_percent = looks.memory_bytes, looks.memory_percent
        self.read, self.wait = fetcher.read, waits.wait
        self.offset_for_timestamp = fetcher.offset_for_timestamp
        self.max_timestamp = fetcher.max_timestamp
        self.trim, self.raise_log_start = trimmer.trim, trimmer.raise_log_start
        self.roll, self.retain = trimmer.roll, trimmer.retain
        self.holds_entries, self.holds_unread = trimmer.holds_entries, trimmer.holds_unread
        self.nodes, self.end_of_first = trimmer.nodes, trimmer.end_of_first
        self.recover_all = recovery.recover_all
        self.pause, self.pause_each = recovery.pause, recovery.pause_each
        self.resume, self.resume_each = recovery.resume, recovery.resume_each

    @classmethod
    def connect(
        cls,
        url: str,
        keyspace: str = DEFAULT_KEYSPACE,
        *,
        password: str | None = None,
        user: str | None = None,
        clock: Clock | None = None,
    ) -> HotLog:
        """A hot log on the server or cluster behind a URL (see `connection.connect`)."""
        return cls(connect(url, password, user), keyspace, clock)

    @property
    def keyspace(self) -> str:
        return self._keys.keyspace

    @property
    def connections(self) -> Servers:
        """The servers it goes by, for what has scripts of its own there."""
        return self._servers

    def asynchronous(self) -> AsyncHotLog:
        """Appends, reads and waits on an event loop; to be closed there."""
        from .asynchronous import AsyncHotLog  # redis-py's asyncio takes 30 ms to import

        return AsyncHotLog(self._servers, self._keys, self._clock, self._appender, self._fetcher)

    def topics(self, copies: Copies | None = None) -> TopicRegistry:
        """The topics of this keyspace.

        Args:
            copies: see `TopicRegistry`.
        """
        return TopicRegistry(self._servers, self._keys, self._clock, copies)

    def renewed(self, topic: Topic) -> Topic:
        """See `TopicRegistry.renewed`."""
        return self.topics().renewed(topic)

    def skips(self, topic_partition: TopicPartition, topic_id: UUID) -> HotSkips:
        """The entries of a partition that were skipped, and the way to do it."""
        return HotSkips(self._servers, self._keys, topic_partition, topic_id)

    def inspection(self) -> Inspection:
        """What the keys hold, sound or damaged."""
        return Inspection(self._servers, self._keys)

    def mending(self) -> Mending:
        """Rights what the keys say of the entries; see `lakelog.operate.check`."""
        return Mending(self._servers, self._keys)

    def rebuilding(self) -> Rebuilding:
        """Rebuilds what the keys say of the entries, where a key is gone."""
        return Rebuilding(self._servers, self._keys)

    def rewrite_persistence(self) -> list[Persistence]:
        """Has each server write its files on disk anew, without what was trimmed.

        Raises:
            HotTierUnavailableError: one does not answer.
        """
        return [rewrite_persistence(server) for server in self._servers.all()]

    @contextmanager
    def naming(self, topic: Topic) -> Iterator[None]:
        """To be held while a topic's table or views are made in a catalog.

        Not every catalog refuses the second of two names that are made at once: open-source Unity
        Catalog then has both, and answers no question about either any more. And who planned to
        make the table of a topic that was purged meanwhile would take the name from the next one.

        Raises:
            UnknownTopicIdError: on entry: it was deleted, and perhaps created again.
        """
        what = f"making the table or the views of topic {topic.name!r}"
        with Lock(self._servers, self._keys.naming_lock(topic.topic_id), what):
            self.topics().renewed(topic)
            yield

    def naming_status(self) -> Lock:
        """As `naming`, of the table of job runs."""
        return Lock(self._servers, self._keys.naming_lock(STATUS_TABLE), f"making {STATUS_TABLE}")

    def archived_into(self) -> ArchivedIntoRegister:
        """Which tables topics are archived into."""
        return ArchivedIntoRegister(self._servers, self._keys)

    def check_own(self, topic: Topic, table: OpenedTable) -> None:
        """Refuses a table that is not the topic's own. Changes nothing.

        Raises:
            ArchivedElsewhereError: the topic is archived into another one.
            UnknownTopicIdError, UnknownTopicOrPartitionError: the topic was dropped.
            ColdTierError: from the table.
        """
        first = topic.partition(0)
        seen = self.offsets([first], topic_id=topic.topic_id)[first]
        check_own(topic, table, seen.archived_into)

    def cold_quota(self) -> ColdQuota:
        """What the tables of the topics take together, and may take."""
        return ColdQuota(self._servers, self._keys)

    def beats(self) -> Beats:
        """What live archivers say of themselves."""
        return Beats(self._servers, self._keys.archivers)

    def gateways(self) -> Beats:
        """Where live gateways are."""
        return Beats(self._servers, self._keys.gateways)

    def cleanups(self) -> Cleanups:
        """What cleanups have counted."""
        return Cleanups(self._servers, self._keys)

    def recover(
        self,
        topic_partition: TopicPartition,
        at_least: int,
        reserve: Reserve | None = None,
        *,
        topic_id: UUID | None = None,
        waits: bool = True,
    ) -> HotOffsets:
        """`recover_all` of one partition; returns its offsets."""
        self.recover_all({topic_partition: at_least}, reserve, topic_id=topic_id, waits=waits)
        return self.offsets([topic_partition])[topic_partition]

    def reserve_more(
        self, topic_partition: TopicPartition, reserve: Reserve, topic_id: UUID
    ) -> None:
        """Reserves offsets in the cold tier although enough are left.

        What archivers have copied of the partition so far can no longer be committed (see
        `cold.planned`).

        Args:
            reserve: as for `recover_all`.
            topic_id: that of the topic's creation.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        seen = self.offsets([topic_partition], topic_id=topic_id)[topic_partition]
        wanted = seen.wanted()
        self._recovery.reserve_more(topic_partition, seen.reserved_end, wanted, reserve, topic_id)

    def close(self) -> None:
        """Closes the connections."""
        self._servers.close()


class HotSource(Struct, frozen=True):
    """How to open a hot log elsewhere: what travels to Spark's executors.

    ``password_ref`` names where the password is, so that it need not travel (see
    `secret_reference`): the process that opens reads it. The URL is shown without its password.
    """

    url: str
    keyspace: str = DEFAULT_KEYSPACE
    password_ref: str | None = None

    def open(self) -> HotLog:
        """The hot log; each process has one for each source.

        Raises:
            InvalidArgumentError, MissingExtraError: the reference names nothing that can be read.
        """
        return _OPEN.get(self, self.connect)

    def connect(self, clock: Clock | None = None, login: tuple[str, str] | None = None) -> HotLog:
        """A new hot log for the caller alone; see `HotLog`.

        Args:
            login: the name and the password of another user of Redis.
        """
        user, password = (None, self.password()) if login is None else login
        return HotLog.connect(self.url, self.keyspace, password=password, user=user, clock=clock)

    def password(self) -> str | None:
        """The password that the reference names, as this process sees it; None without one.

        Raises:
            InvalidArgumentError, MissingExtraError: see `resolve_secret`.
        """
        if self.password_ref is None:
            return None
        return resolve_secret(self.password_ref, "password_ref")

    def __str__(self) -> str:
        return mask(self.url)

    def __repr__(self) -> str:
        return f"HotSource({str(self)!r}, {self.keyspace!r}, {self.password_ref!r})"


_OPEN: OnceAProcess[HotSource, HotLog] = OnceAProcess()


# -- planned stops ---------------------------------------------------------------------------------
#
# They leave no gaps in logs. That takes every partition that may ever be appended to again: those
# of the keyspace's topics, of its tenants' topics, and of deleted ones that may still come back.


def pause_all(hot: HotLog) -> list[TopicPartition]:
    """Refuses appends everywhere and marks partitions clean; then Redis may be stopped.

    Returns:
        The partitions that could not be marked, because they were not recovered after the last
        stop; the next start will leave a gap in them, as it would have anyway.
    """
    # One of an unknown topic is no concern: its creation was cut short, nothing was ever appended.
    return [
        topic_partition
        for one, topic_partitions in _everything(hot)
        for topic_partition, refused in one.pause_each(topic_partitions).items()
        if isinstance(refused, RecoveryNeededError)
    ]


def resume_all(hot: HotLog) -> list[TopicPartition]:
    """Accepts appends again, after a planned stop or instead of one.

    Returns:
        The partitions that have no clean mark or whose server does not let us make sure of its
        disk; the next producer or archiver recovers them, with a gap.
    """
    return [
        topic_partition
        for one, topic_partitions in _everything(hot)
        for topic_partition, refused in one.resume_each(topic_partitions).items()
        if not isinstance(refused, UnknownTopicOrPartitionError)
    ]


def _everything(hot: HotLog) -> Iterator[tuple[HotLog | Recovery, list[TopicPartition]]]:
    """What takes the steps of a stop, and of which partitions; the keyspace's own topics first."""
    tenants = TenantRegister(hot.connections, Keys(hot.keyspace)).list()
    others = [HotLog(hot.connections, tenant_keyspace(hot.keyspace, name)) for name in tenants]
    for one in (hot, *others):
        topics = one.topics()
        deleted = topics.deleted()
        # After a deletion that was cut short, partitions may still be in their place.
        there = {topic.name: topic for topic in (*deleted, *topics.list())}
        yield one, [tp for topic in there.values() for tp in topic.topic_partitions()]
        for topic in deleted:
            if topic.purged_ms is None:  # else it cannot come back
                kept = KeptKeys(one.keyspace, topic_id=topic.topic_id)
                yield Recovery(one.connections, kept, None), list(topic.topic_partitions())

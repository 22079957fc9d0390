"""`Lakelog`: where the tiers are, and the stages over them, ready to use."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from msgspec.structs import replace

from .base.back_off import PATIENCE_S
from .base.clock import Clock
from .base.text_table import counted
from .cleanup import STEPS
from .cold.table import NO_TABLE, ColdTable
from .cold_log import ColdLog
from .engines.engine import TASKS_AT_ONCE, Engine, InlineEngine
from .errors import (
    ArchivedElsewhereError,
    CleanupFailedError,
    HotTierAccessError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    RestoreFailedError,
    UnknownTopicOrPartitionError,
    by_topic,
)
from .groups.admin import GroupAdmin
from .groups.coordinator import GroupCoordinator
from .groups.group_records import GroupRecords
from .groups.share.admin import ShareGroupAdmin
from .hot import HotLog, TopicRegistry
from .operate.acl.redis_rules import EVERY
from .operate.check.finding import TIERS
from .operate.group_recorder import GroupKeeper
from .place import ColdRoot, LogPlace, PathRoot
from .place.catalog_names import NamesInCatalog
from .place.cold_mirror import ColdMirror, may_have_table
from .read.subscription import SeenTopics
from .read.topic_log import TopicLog
from .read.unified_log import UnifiedLog
from .spark.auto_engine import AutoEngine, choose_engine
from .tracing.switch import tracer
from .values.arguments import checked_duration, optional_duration, optional_event
from .values.config import QUOTA_COLD_BYTES
from .values.offsets import HotSegments, Latest
from .values.reservation import FEW_OFFSETS
from .values.topic import GROUPS_TABLE, Topic, topic_names
from .values.topic_partition import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from .archive.archiver import Archiver, Until
    from .archive.continuous import ContinuousArchive
    from .archive.report import ArchiveReport, Trouble
    from .cleanup.cleanup import Cleanup, Removal
    from .cleanup.report import CleanupReport
    from .cold.answers import PurgedTopic
    from .cold.catalogue import Catalogue
    from .groups.share.share_partitions import SharePartitions
    from .ingest.producer import Producer
    from .operate.acl.acl import Acl
    from .operate.acl.redis_rules import Role
    from .operate.check.check import Checked
    from .operate.check.finding import CheckReport
    from .operate.erasure.erase import HotSide
    from .operate.group_lag import GroupLag, GroupOffset
    from .operate.group_offsets import GroupOffsetsAdmin, ShareGroupOffsets
    from .operate.group_recorder import GroupRecorder, GroupsRecorded, RestoredGroup
    from .operate.groups_table import GroupsTable
    from .operate.metrics.log_look import LogLook
    from .operate.restore import RestoredTopic, RestoredTopics
    from .operate.skip import Skips
    from .operate.status import Status
    from .operate.transfer.exporting import Progress
    from .operate.transfer.exporting import Source as ExportSource
    from .operate.transfer.importing import ImportedTopic
    from .place.tenants.tenant import QuotaUsage
    from .place.tenants.tenants import Tenants
    from .read.share.share_consumer import ShareConsumer


logger = logging.getLogger(__name__)

#: How often a continuous run asks whether retention is due in untiered topics, which may be idle.
RETENTION_INTERVAL_S = 60


class Lakelog(ColdLog):
    """A keyspace of topics: hot in Redis, cold in Delta tables. Made by `connect` or `embedded`.

    Beside what is here it has all that a `ColdLog` has, over both tiers. Thread-safe. Closing it
    closes the connections, and stops the embedded Redis if this was its last user.
    """

    hot: HotLog
    topics: TopicRegistry

    def __init__(self, place: LogPlace, engine: Engine, *, clock: Clock | None = None) -> None:
        super().__init__(place, engine, clock=clock)
        self._given_clock = clock
        self._archivers: dict[UUID, Archiver] = {}  # that no run has now, with what they know
        self._closing = ExitStack()  # what is let go of with the connections, last first
        self._has_produced = False
        self._names = NamesInCatalog(place.cold, self._cold_table, self.register)
        self.hot = place.source.connect(clock=clock)
        keyspace = place.source.keyspace
        self._mirror = ColdMirror(place.cold, keyspace, self._opened_once, self.hot, place.tenant)
        self.topics = self.hot.topics(self._mirror)
        #: The groups of consumers: which there are, who is in them.
        self.groups = GroupAdmin(self.hot.connections, keyspace, clock=clock)
        #: The share groups: how far each has come, who holds what.
        self.share_groups = ShareGroupAdmin(self.hot.connections, keyspace, clock=clock)
        self._clock = clock or _HotClock(self.hot)
        records = GroupRecords(self.hot.connections, keyspace, clock)
        self._recorder = None if place.cold is None else self._recorder_of(records, place.cold)
        self._group_records = records
        self._group_keeper = GroupKeeper(self.groups, records, self._recorder)

    @overload
    @classmethod
    def connect(
        cls,
        redis_url: str,
        cold: str | Path | None = None,
        *,
        location: str | Path | None = None,
        keyspace: str | None = None,
        tenant: str | None = None,
        engine: Engine | str | None = None,
        password_ref: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Lakelog: ...

    @overload
    @classmethod
    def connect(
        cls,
        redis_url: None,
        cold: str | Path,
        *,
        location: str | Path | None = None,
        keyspace: str | None = None,
        tenant: str | None = None,
        engine: Engine | str | None = None,
        password_ref: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> ColdLog: ...

    @classmethod
    def connect(
        cls,
        redis_url: str | None,
        cold: str | Path | None = None,
        *,
        location: str | Path | None = None,
        keyspace: str | None = None,
        tenant: str | None = None,
        engine: Engine | str | None = None,
        password_ref: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> ColdLog:
        """Connects to a Redis and a cold root; without a Redis, to what is archived there.

        Args:
            redis_url: ``redis://``, ``rediss://`` or ``unix://``; ``?cluster=true`` for a cluster,
                of which it may name several servers, with commas between them.
                None: a `ColdLog`, which reads what is archived and cleans it up.
            cold: a folder, an object store's URL, or ``catalog.schema`` for tables by name, which
                only Spark writes and reads. None: only untiered topics can be used.
            location: where the tables of ``catalog.schema`` lie, if they are not the catalog's
                own: they are written by path then, and known to the catalog by name.
            keyspace: what all keys begin with; default ``lakelog``. Without a Redis, whose tables
                are meant where several share the root; default: a name that several have is
                refused.
            tenant: whose topics are meant: of its own keyspace, folder or schema, apart from those
                of all others; see `tenants`. ``"shared"`` is there without being created.
            engine: what archiving, cleanup and verifying run on: ``"inline"`` (this process, no
                Java), ``"spark"``, ``"auto"``, or an `Engine`. Default: ``"auto"``, the Spark that
                is running; else this process, and a Spark for 2 GiB or more.
            password_ref: ``env:NAME``, ``file:/PATH`` or ``databricks:SCOPE/KEY``, where every
                process that reads finds the password; see `secret_reference`.
            storage_options: what opens an object store (``AWS_ENDPOINT_URL``, …), over environment
                variables of the same names; secrets as references such as ``env:NAME``.
            clock: for tests.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or not us.
            ColdTierError: deltalake is too old, or the root cannot be one.
            InvalidArgumentError: neither tier is named.
            UnknownTenantError: there is no such tenant.
        """
        place = LogPlace.of(
            redis_url,
            cold,
            location,
            keyspace=keyspace,
            password_ref=password_ref,
            storage_options=storage_options,
        )
        chosen = choose_engine(engine, place.object_stores)
        if place.hot is None:
            place = place if tenant is None else place.of_tenant(tenant)
            return ColdLog.of(place, chosen, clock=clock)
        return cls._answering(place, chosen, clock, tenant)

    @classmethod
    def embedded(
        cls,
        directory: str | Path,
        *,
        tenant: str | None = None,
        engine: Engine | str | None = None,
    ) -> Lakelog:
        """A lakelog in one directory, with a Redis of its own that runs while it is used.

        Data is kept between runs; other processes that open the directory share the Redis. Other
        users of the machine can neither reach the Redis nor look into the folders that are made.

        Raises:
            MissingExtraError: there is neither a redis-server nor the wheel that brings one.
            EmbeddedRedisError: it does not start, or a folder is somebody else's, may be written by
                others, or has no room.
            InvalidArgumentError: there can be no such directory.
            UnknownTenantError: there is no such tenant; see `connect`.
        """
        from .place.embedded import EmbeddedPlace

        with ExitStack() as opened:
            place = opened.enter_context(closing(EmbeddedPlace(directory))).place
            chosen = choose_engine(engine, place.object_stores)
            lakelog = cls._answering(place, chosen, tenant=tenant)
            lakelog.topics.first_offsets = FEW_OFFSETS  # its producers have the tables at hand
            lakelog._closing = opened.pop_all()
        return lakelog

    @classmethod
    def _answering(
        cls,
        place: LogPlace,
        engine: Engine,
        clock: Clock | None = None,
        tenant: str | None = None,
    ) -> Lakelog:
        own = place if tenant is None else place.of_tenant(tenant)
        lakelog = cls(own, engine, clock=clock)
        try:
            lakelog.hot.now_ms()  # a wrong URL or password shows here, not at the first record
            if tenant is not None:
                lakelog._tenants_of(place).get(tenant)
        except BaseException:
            lakelog.close()
            raise
        return lakelog

    # -- the stages ----------------------------------------------------------------------------

    def producer(self, **config: Any) -> Producer:
        """A producer; keyword arguments are `ProducerConfig`'s fields.

        Raises:
            InvalidConfigError: no such field, or a value out of bounds.
        """
        from .ingest.producer import Producer, ProducerConfig

        self._has_produced = True
        found = tracer()
        kind: Callable[..., Producer] = Producer
        if found is not None:
            from .ingest.traced_producer import TracedProducer

            kind = partial(TracedProducer, tracer=found)
        return kind(
            self.hot,
            self.topics,
            self._recover,
            ProducerConfig.of(**config),
            clock=self._given_clock,
        )

    def share_consumer(self, *topics: str, **config: Any) -> ShareConsumer:
        """A consumer of a share group, which takes records of topics from one queue with others.

        Args:
            topics: to subscribe to.
            config: fields of `ShareConsumerConfig`; ``group_id`` is needed.

        Raises:
            InvalidConfigError: no such field, a value that is not legal, or no group.
            InvalidGroupIdError: not an id.
            UnknownTopicOrPartitionError: there is no such dead-letter topic.
            InvalidTopicError: a name that no topic can have.
        """
        from .groups.share.share_partitions import SharePartitions
        from .read.share.dead_letters import DeadLetters
        from .read.share.share_consumer import ShareConsumer
        from .read.share.share_consumer_config import ShareConsumerConfig

        chosen = ShareConsumerConfig.of(**config)
        settings = chosen.group_settings
        dead_letters = None
        if settings.dead_letter_topic is not None:
            self.topics.get(settings.dead_letter_topic)
            dead_letters = DeadLetters(
                chosen.group_id,
                settings.dead_letter_topic,
                settings.delivery_count_limit,
                self.log,
                self.producer,
            )
        shares = SharePartitions(
            self.hot.connections,
            chosen.group_id,
            self._place.source.keyspace,
            settings,
            self._given_clock,
        )
        logs = partial(self.log, stored_values=chosen.stored_values)
        consumer = ShareConsumer(logs, chosen, shares, self._seen_topics(), self.hot, dead_letters)
        if topics:
            consumer.subscribe(topics)
        return consumer

    def log(self, topic: str | Topic, *, stored_values: bool = False) -> UnifiedLog:
        """The topic as one log over both tiers.

        Args:
            stored_values: give encrypted values as they are stored, which takes no key.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
        """
        found = self._topic(topic)
        return UnifiedLog(
            found,
            self.hot,
            self._table(found),
            clock=self._clock,
            frame_of=self._frame,
            explorer_of=self.explore,
            open_table=partial(self._opened_once, found),
            stored_values=stored_values,
        )

    def archive(
        self,
        topics: str | Iterable[str] | None = None,
        until: Until = Latest(),  # noqa: B008, an immutable value
        *,
        patience: timedelta = timedelta(seconds=PATIENCE_S),
        adopt: bool = False,
    ) -> list[ArchiveReport]:
        """Archives what is there now, or what lies before a bound; a report a topic.

        A topic that fails does not stop the others. One whose store or Redis is busy or away is
        tried again, after the others. Running it again does nothing, and the reports say so. What a
        catalog does not take (a view, the name of a table at a path) is among the report's
        `troubles`: it fails nothing, and the next run tries again. Of
        untiered topics, it forgets what their retention says, as happens when something is
        appended: what is older than ``retention.ms`` when the next check is due.

        What records are copied by, and why, is among the report's `engines`. Unless that is Spark
        in any case, a few topics with something to wait for are worked on at a time, in threads of
        their own. An interrupted call cancels jobs of Spark, and lets what is under way here
        finish, for 2.2 s at most.

        Args:
            topics: names; None for all that are tiered.
            until: see `Archiver.run_once`.
            patience: how long what fails but may be tried again is.
            adopt: archive into these tables from now on, also if a topic was archived into
                another one before, which is gone for good (see `ArchivedElsewhereError`).

        Raises:
            ArchiveFailedError: something could not be archived; the rest was, and every report and
                every error is in this one.
            InvalidArgumentError: `until` bounds nothing.
            LakelogError: if `topics` is one name, that topic's own error; see `Archiver.run_once`.
        """
        from .archive.archiver import check_until
        from .archive.topics_run import TopicsRun

        check_until(until)
        patience_s = checked_duration("patience", patience).total_seconds()
        found = self._topics(topics)
        # Of those named, one that is untiered is refused; see `archiver`.
        chosen = [topic for topic in found if topics is not None or topic.config.tiered]

        def attempt(topic: Topic) -> tuple[ArchiveReport, Sequence[LakelogError]]:
            archiver = self._archivers.pop(topic.topic_id, None) or self.archiver(topic)
            if adopt:
                archiver.adopt()
            report, errors = archiver.attempt(until)
            self._archivers[topic.topic_id] = archiver
            if not errors:
                report = replace(report, troubles=self._names.show(topic))
            return report, errors

        run = TopicsRun(attempt, at_once=self._topics_at_once(), cancel=self._cancel)
        run.archive(chosen, patience_s)
        if topics is None:
            for gone in self._archivers.keys() - {topic.topic_id for topic in found}:
                self._archivers.pop(gone, None)
            for topic in found:
                run.do(topic, self._retain_when_due)
        self._group_keeper.attend()
        if isinstance(topics, str | Topic):
            for errors in run.errors.values():
                raise errors[0]
        return run.checked()

    def archive_continuously(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        stop: threading.Event | None = None,
        max_duration: timedelta | None = None,
        tell: Callable[[Sequence[Trouble]], None] | None = None,
        cleaned: Callable[[CleanupReport], object] | None = None,
    ) -> ContinuousArchive:
        """Archives by each topic's flush policy until stopped; yields a report per commit.

        No outage of Redis or of the store ends it, and no topic that fails stops another; see
        `ContinuousArchive`. Beside that, it merges the small files that frequent commits leave
        (see `plan_optimize`).

        Args:
            topics: names; None for all that are tiered, also those created meanwhile.
            stop: set it to archive what is left and end; what hangs is left alone after 2.5 s.
            max_duration: ends by itself after so long.
            tell: told of what fails, when it begins and once a minute while it lasts.
            cleaned: have it clean up as well, as `clean_continuously` does, and tell this of each
                report that has something to tell.

        Raises:
            UnknownTopicOrPartitionError, InvalidArgumentError: a name is no topic's, or one that is
                not archived.
            ArchiveUnfinishedError: while iterating, at the end: something could not be archived.
        """
        from .archive.continuous import ContinuousArchive

        names = None if topics is None else topic_names(topics)
        for topic in self._seen_now(names):
            if not (topic.config.tiered and self._place.cold):
                self._cold_table(topic)  # says so: nobody could mend that meanwhile
        retained_s = time.monotonic()

        def listed() -> list[Topic]:
            found = [topic for topic in self.topics.list() if topic.config.tiered]
            self._names.topics_are(found)
            return [topic for topic in found if names is None or topic.name in names]

        def keep() -> None:
            nonlocal retained_s
            self._group_keeper.attend_now_and_then()
            if names is None and time.monotonic() - retained_s >= RETENTION_INTERVAL_S:
                retained_s = time.monotonic()
                for topic in self.topics.list():
                    self._retain_when_due(topic)

        def clean() -> float:
            try:
                reports: Sequence[CleanupReport] = self.cleanup(names)
            except CleanupFailedError as error:
                logger.warning("%s", error)
                reports = error.reports
            for report in reports:
                if cleaned is not None and (report or report.failures or report.trimmed):
                    cleaned(report)
            return self._cleanup_interval_ms() / 1000

        return ContinuousArchive(
            self.hot,
            listed,
            self.archiver,
            stop=optional_event("stop", stop),
            max_duration=optional_duration("max_duration", max_duration),
            archived=self._reported,
            troubles_beside=lambda: (*self._names.troubles(), *self.group_troubles()),
            tidy=lambda topic: self._cleaner(topic).run(["optimize"]),
            clean=None if cleaned is None else clean,
            keep=keep,
            tell=tell,
        )

    def archiver(self, topic: str | Topic) -> Archiver:
        """The archiver of one tiered topic.

        Raises:
            InvalidArgumentError: the topic is untiered, or this lakelog has no cold root.
        """
        from .archive.archiver import Archiver

        found = self._topic(topic)
        return Archiver(
            found,
            self.hot,
            self._cold_table(found),
            current_topic=lambda: self.topics.renewed(found),
            may_make=self._place.check_may_make,
        )

    def cleanup(
        self, topics: str | Iterable[str] | None = None, *, steps: Sequence[str] = STEPS
    ) -> list[CleanupReport]:
        """Forgets what the topics' policies say, and keeps the cold tier fast; a report a topic.

        Retain, compact, optimize, vacuum, then the hot tier forgets what the log starts have
        passed. Safe at any time, beside archivers, readers and other cleanups; running it again
        does nothing more. Of untiered topics, it forgets at once what their retention says. Deleted
        topics that ``file.delete.delay.ms`` keeps no longer are removed for good.

        Args:
            topics: names; None for all that are tiered.
            steps: some of ``retain``, ``compact``, ``optimize``, ``vacuum``.

        Raises:
            CleanupFailedError: something failed (a damaged file, a table that contradicts itself);
                the rest was done, and `reports` is in the error.
        """
        from .cleanup.cleanup import Removal, clean_all

        removals: Iterable[Removal]
        if topics is None:
            chosen, removals = self._cleaners(), self._removals()
            for topic in self.topics.list():
                self._retain(topic)
        else:
            chosen, emptied = self._named_cleaners(topics)
            removals = [Removal(topic, self._vacuumed, "empty") for topic in emptied]
        self._group_keeper.attend()
        try:
            return clean_all(
                chosen, steps, self._forget, removals=removals, tell=self._tell_cleaned
            )
        finally:
            self._tell_cold_bytes()
            if topics is None:
                self._forget_counts()

    def status(self, topics: str | Iterable[str] | None = None) -> Status:
        """Where every partition stands, and how the hot tier is doing.

        A topic that cannot be looked at (no cold root was given, a table that contradicts itself,
        or does not answer for a minute) is among the `failures`; the others are told all the same.
        """
        from .operate.status import status

        asked, looks = self._topics(topics), self.log_look.tables
        seen = status(self.hot, asked, self._table, redis=self.hot, looks=looks)
        told = {one.topic for one in seen.troubles}
        own = [one for one in self.group_troubles() if one.topic not in told]
        return replace(seen, troubles=(*seen.troubles, *own))

    def group_lags(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        choose: Callable[[Sequence[GroupOffset]], Iterable[GroupOffset]] | None = None,
    ) -> list[GroupLag]:
        """How far every group, share groups too, is behind in each partition, and who is in it.

        Reads the first unread record of each position that is behind, for 20 s; what there was no
        time for has no `lag_ms`. Partitions of which a group has committed nothing have no line,
        nor have those of topics that cannot be looked at.

        Args:
            topics: names; None for all.
            choose: which get that closer look, and in which order, where there are more groups than
                it is worth; default: all, by group, topic and partition.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        from .operate.group_lag import GroupLags

        behind = GroupLags(self._group_records, self.groups, self.share_groups, self.log)
        names = None if topics is None else {topic.name for topic in self._topics(topics)}
        seen = behind.offsets(names)
        return behind.lags(seen if choose is None else choose(seen))

    def check(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        repair: bool = False,
        tiers: Collection[str] = TIERS,
        progress: Callable[[int], None] | None = None,
    ) -> CheckReport:
        """See `ColdLog.check`. If Redis does not answer, what is archived is checked all the same,
        and the report says so.
        """
        from .operate.check.check import with_unreachable
        from .operate.check.finding import CheckReport

        try:
            return super().check(topics, repair=repair, tiers=tiers, progress=progress)
        except (HotTierUnavailableError, HotTierAccessError) as error:
            report = CheckReport((), ())
            if self._place.cold is not None:
                report = self.archived.check(topics, repair=repair, tiers=tiers, progress=progress)
            return with_unreachable(report, error)

    def acl(
        self,
        role: Role | str,
        topics: str | Iterable[str] = EVERY,
        *,
        groups: str | Iterable[str] = EVERY,
        user: str | None = None,
        load_scripts: bool = False,
    ) -> Acl:
        """The least rights in Redis, and in S3 under the cold root, with which a role can work.

        Changes nothing and asks nobody.

        Args:
            role: ``producer``, ``consumer``, ``reader``, ``archiver`` or ``admin``.
            topics, groups, user, load_scripts: see `operate.acl.acl.acl`.

        Raises:
            InvalidArgumentError, InvalidTopicError: see there.
        """
        from .operate.acl.acl import acl

        place = self.place
        return acl(
            role,
            topics,
            groups=groups,
            keyspace=place.source.keyspace,
            cold=place.cold.storage.root if isinstance(place.cold, PathRoot) else None,
            user=user,
            load_scripts=load_scripts,
        )

    def restorable(self) -> list[Topic]:
        """The topics that Redis has lost and `restore` would bring back, as their tables tell them.

        Reads the properties of every table under the cold root.

        Raises:
            ColdTierError: the root cannot be listed.
        """
        if self._place.cold is None:
            return []
        catalogue = self._place.cold.catalogue(self._place.source.keyspace)
        topics = self.topics.list()
        lost = catalogue.lost(topics[0].keyspace_id if topics else None, topics)
        deleted = {topic.topic_id for topic in self.topics.deleted()}
        return [topic for topic in lost if topic.topic_id not in deleted]

    def restorable_groups(self) -> list[RestoredGroup]:
        """What `restore` would bring back of groups, whichever topics it is asked for.

        Raises:
            ColdTierError: the root cannot be listed, or the table of groups not be read.
        """
        if self._recorder is None:
            return []
        lost = self.restorable()
        keyspace_id = self.topics.keyspace_id()
        if keyspace_id is None and lost:  # it comes back with them
            keyspace_id = lost[0].keyspace_id
        there = {topic.topic_id for topic in (*self.topics.list(), *lost)}
        return self._recorder.restorable(keyspace_id, there)

    def restore(self, topics: str | Iterable[str] | None = None) -> RestoredTopics:
        """Brings topics back that Redis has lost: their ids, their settings, and what is archived.

        Their logs go on above every offset that was ever given out. What no table tells is gone:
        records that were not archived yet, topics of which nothing was archived, untiered ones.
        The groups come back with them, all of them, as they were recorded last (see
        `record_groups`): each offset that Redis has not, or only an earlier commit of.
        Safe beside producers, archivers and other restores; topics that are there stay as they are,
        and doing it again does nothing.

        Args:
            topics: names; None for all that were lost.

        Returns:
            The topics; ``groups`` are what came back of groups.

        Raises:
            UnknownTopicOrPartitionError: no table of that name lies there.
            AmbiguousTopicError: tables of several Redises' keyspaces of this name do.
            RestoreFailedError: something could not be restored (the keyspace has got other topics,
                a table is damaged or of a newer lakelog); the rest was, and is in the error.
            InvalidArgumentError: no cold root was given.
        """
        from .operate.restore import RestoredTopics, restore

        root = self._place.cold
        if root is None:
            raise InvalidArgumentError(
                "topics are restored from their tables, and no cold root was given; pass cold=… "
                "(--cold)"
            )
        catalogue = root.catalogue(self._place.source.keyspace)
        there = {topic.name: topic for topic in self.topics.list()}
        deleted = {topic.topic_id for topic in self.topics.deleted()}  # tables may not know it yet
        if topics is None:
            lost = [
                one
                for one in catalogue.topics
                if one.name not in there and one.topic_id not in deleted
            ]
            errors: dict[str, LakelogError] = {
                str(one.topic): one for one in catalogue.untold(root) if one.topic not in there
            }
        else:
            names = topic_names(topics)
            lost = [catalogue.topic(name, root) for name in names]
            errors = {}
        restored = RestoredTopics()
        for topic in lost:
            try:
                restored.append(restore(topic, self.hot, self.topics, self._cold_table(topic)))
            except LakelogError as error:
                errors[topic.name] = error
        assert self._recorder is not None  # there is a cold root
        try:
            restored.groups = tuple(self._recorder.bring_back())
        except LakelogError as error:
            errors[GROUPS_TABLE] = error
        if errors:
            raise RestoreFailedError(
                f"{counted(len(restored), 'topic')} {'was' if len(restored) == 1 else 'were'} "
                f"restored, but not {by_topic(errors)}",
                restored=tuple(restored),
                errors=errors,
                groups=restored.groups,
            )
        return restored

    def record_groups(self) -> GroupsRecorded:
        """Records what groups have committed in the table ``_lakelog_groups`` of the cold root.

        `archive`, `archive_continuously` and `cleanup` do it besides, the second of them every 30
        seconds; it is for who runs none of them. If nothing has changed, nothing is written.

        Raises:
            ColdTierError: the table cannot be read, or takes no commit.
            InvalidArgumentError: no cold root was given.
        """
        if self._recorder is None:
            raise InvalidArgumentError(
                "groups are recorded in a table under the cold root, and none was given; pass "
                "cold=… (--cold)"
            )
        return self._recorder.record()

    def group_troubles(self) -> tuple[Trouble, ...]:
        """See `ColdLog.group_troubles`: as found when this object last tried, or none.

        Its topic is the table, ``_lakelog_groups``. Other archivers' are among the troubles of
        `status`.
        """
        trouble = self._group_keeper.trouble()
        return () if trouble is None else (trouble,)

    @cached_property
    def group_offsets(self) -> GroupOffsetsAdmin:
        """How far groups of consumers have come; moves them."""
        from .operate.group_offsets import GroupOffsetsAdmin

        return GroupOffsetsAdmin(self.log, self._coordinator(), self.groups, self.hot.now_ms)

    @cached_property
    def share_group_offsets(self) -> ShareGroupOffsets:
        """Where share groups begin; moves that."""
        from .operate.group_offsets import ShareGroupOffsets

        return ShareGroupOffsets(self.log, self.share_groups, self._shares, self.hot.now_ms)

    def import_topics(
        self,
        source: str | Path,
        topics: str | Iterable[str] | None = None,
        *,
        name: str | None = None,
        config: Mapping[str, object] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[ImportedTopic]:
        """Brings topics in that `export` wrote, with the offsets, times and settings they had.

        Each is a topic of its own from then on: it has a new id, and its log goes on where the
        export ends. Groups come along, under the topic's name, but for what they have committed
        since. The export is checked first, each file against its checksum, and no topic shows
        before all of it is there. Doing it again, or after a call that was cut short, does the
        rest.

        Args:
            source: what `export` was given.
            topics: names in the export; None for all.
            name: what the one topic is called here; default: as it was.
            config: settings that it gets besides.
            storage_options: open the object store; default: those of the cold root.
            progress: told of the bytes that are copied.

        Raises:
            CorruptExportError: it is unfinished, damaged or forged; nothing of it was imported.
            NewerVersionError: a newer lakelog wrote it.
            MissingFileError: there is no export.
            UnknownTopicOrPartitionError: the export has no such topic.
            TopicExistsError: another topic has the name, or got it meanwhile.
            QuotaExceededError: there would be more topics than the keyspace may have.
            InvalidArgumentError: no cold root at a path was given, or a topic is untiered.
            ArchivedElsewhereError: the folder of the cold root is away, as the log's topics tell.
            ColdTierError: the export cannot be read, or the cold root not be written.
        """
        from .operate.transfer.importing import Importer
        from .operate.transfer.places import fitting_options, open_reader

        root = self._place.cold
        if storage_options is None and isinstance(root, PathRoot):
            storage_options = fitting_options(source, root.storage)
        importer = Importer(
            self.hot,
            self.topics,
            self._group_records,
            None if root is None else self._opened,
            self._place.source.keyspace,
        )
        names = None if topics is None else topic_names(topics)
        self._place.check_is_there()
        reader = open_reader(source, storage_options)
        return importer.run(reader, names, name, config or {}, progress)

    def deleted(self) -> list[Topic]:
        """The deleted topics of which something is kept, in the order of their deletions.

        ``deleted_ms`` says when that was, ``kept_until_ms`` until when `undelete` brings all of
        it back; after that, cleanup removes it.

        Raises:
            ColdTierError: the cold root cannot be listed.
        """
        found = self.topics.deleted()
        if self._lists_cold:  # Redis may have been lost since: the tables tell
            found += self._cold_beside(found).deleted
        return sorted(found, key=lambda topic: topic.deleted_ms or 0)

    def undelete(
        self, name: str, topic_id: str | UUID | None = None, *, gone: bool = False
    ) -> RestoredTopic:
        """Brings back a deleted topic: id, settings, all records, producers.

        After ``file.delete.delay.ms`` only what is archived comes back, until cleanup removes that
        too. Doing it again, or after a call that was cut short, does the rest.

        Args:
            topic_id: which, of several deleted ones of that name; None for the last.
            gone: its table is gone for good, so that what Redis kept comes back alone.

        Raises:
            UnknownTopicOrPartitionError: no deleted topic of that name is kept.
            TopicExistsError: there is another topic of that name.
            ArchivedElsewhereError: its table is not there; see `gone`. Nothing was changed.
            TopicPurgedError: nothing of it is left, or it is being removed for good.
            ColdTierError: its table cannot be read or committed to; nothing was changed.
        """
        from .operate.restore import undelete

        topic = self._to_undelete(name, topic_id)
        root = self._place.cold
        is_cold = topic.config.tiered or (root is not None and may_have_table(topic, root))
        table = self._opened(topic) if is_cold else None
        return undelete(topic, self.hot, self.topics, table, gone=gone)

    def skips(self, topic: str | Topic, partition: int) -> Skips:
        """The entries and files of a partition that were skipped, and the way to do it.

        Raises:
            UnknownTopicOrPartitionError: no such topic or partition.
        """
        from .cold.by_path.path_table import PathTable
        from .cold.by_path.skip import ColdSkips
        from .operate.skip import Skips

        found = self._topic(topic)
        found.partition(partition)
        table = self._table(found)
        files = ColdSkips(found, table, partition) if isinstance(table, PathTable) else None
        return Skips(found, partition, self.hot, table, files)

    def quotas(self) -> list[QuotaUsage]:
        """What the topics of this keyspace use of each of its quotas, and what they may.

        Quotas are the keyspace's settings ``lakelog.quota.…``; see `Tenants.set_quotas`. Looks at
        every partition and every table.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        from .place.tenants.tenant import quota_usage

        return quota_usage(self.hot, self.topics, self._table)

    @property
    def tenants(self) -> Tenants:
        """The tenants of this log: who there is, what each may use and uses.

        Raises:
            InvalidArgumentError: this log is a tenant's, who sees no others.
        """
        if self._place.tenant is not None:
            raise InvalidArgumentError(
                f"this log is that of tenant {self._place.tenant!r}, who sees no others; connect "
                "without a tenant (--tenant, LAKELOG_TENANT)"
            )
        return self._tenants_of(self._place)

    @property
    def archived(self) -> ColdLog:
        """What is archived, by itself: it is read whether Redis answers or not.

        Raises:
            InvalidArgumentError: no cold root was given.
        """
        return ColdLog.of(self._place.archived, self._engine, clock=self._given_clock)

    def close(self) -> None:
        """Closes the connections; the embedded Redis stops with its last user.

        Producers that are open take no more records; what they hold is sent first.

        Raises:
            DeliveryError: an open producer's records had no answer in time; all is closed.
        """
        try:
            if self._has_produced:
                from .ingest.open_producers import close_all_of

                close_all_of(self.hot)
        finally:
            self.hot.close()
            self._closing.close()

    def __repr__(self) -> str:
        source = self._place.source
        return f"Lakelog({source}, {self._place}, keyspace={source.keyspace!r})"

    # -- how -----------------------------------------------------------------------------------

    def _tenants_of(self, place: LogPlace) -> Tenants:
        from .place.tenants.tenants import Tenants

        def opened(name: str) -> Lakelog:
            return Lakelog(place.of_tenant(name), self._engine, clock=self._given_clock)

        return Tenants(self.hot.connections, place, self.hot.now_ms, opened)

    def _tell_cleaned(self, topic: Topic, report: CleanupReport) -> None:
        """Have whoever watches the log, from whatever process, know what a cleanup counted."""
        from .operate.metrics.log_look import tell_cleanup

        try:
            tell_cleanup(self.hot.cleanups(), topic, report)
        except LakelogError as error:
            logger.warning("what the cleanup of %s counted is not told: %s", topic.name, error)

    def _forget_counts(self) -> None:
        """Of topics that are gone."""
        try:
            self.hot.cleanups().retain(topic.topic_id for topic in self.topics.list())
        except LakelogError as error:
            logger.debug("what cleanups of deleted topics counted is kept: %s", error)

    def _tell_cold_bytes(self) -> None:
        """Have archivers that keep to a quota of cold bytes know what a cleanup freed."""
        try:
            if QUOTA_COLD_BYTES in self.topics.defaults():
                self.quotas()
        except LakelogError as error:
            logger.warning("what the tables take was not counted anew: %s", error)

    def _hot_side(self, topic: Topic) -> HotSide:
        from .operate.erasure.erase import HotSide

        kept = len(self.topics.deleted(topic.name))
        log = self.log(topic, stored_values=True)  # to erase takes no key
        return HotSide(self.hot, self.archiver(topic), log, self.share_groups, kept)

    def _made_log_look(self) -> LogLook:
        from .operate.metrics.log_look import LogLook

        return LogLook(self.hot, self._table, self._group_records, self.hot.now_ms)

    def _checked(self) -> Checked:
        from .cold.catalogue import Catalogue
        from .operate.check.check import Checked

        root, keyspace = self._place.cold, self._place.source.keyspace

        def log_of(topic: Topic, is_cold: bool) -> UnifiedLog:
            # Without its table, if the root is away or was not given.
            return self.log(topic) if is_cold else UnifiedLog(topic, self.hot, None)

        return Checked(
            root,
            self.hot,
            self.topics,
            self._group_records,
            log_of,
            self._opened,
            lambda: Catalogue() if root is None else root.catalogue(keyspace),
        )

    def _seen_topics(self) -> SeenTopics:
        return SeenTopics(self.topics.list, self.topics.version)

    def _export_sources(self, topics: Iterable[Topic]) -> list[ExportSource]:
        from .archive.copy import HotRows
        from .operate.transfer.exporting import Source as ExportSource

        groups = self._group_records.read().offsets  # before any topic is looked at
        rows_of = HotRows(self._place.source)
        sources = []
        for topic in topics:
            table = self._table(topic)
            if table is not None:
                self.hot.check_own(topic, table)
            sources.append(ExportSource(topic, table, self.hot, rows_of, groups))
        return sources

    def _recorder_of(self, records: GroupRecords, root: ColdRoot) -> GroupRecorder:
        from .operate.group_recorder import GroupRecorder

        def table() -> GroupsTable:
            from .operate.groups_table import open_groups_table

            return open_groups_table(root, self._place.naming_status)

        return GroupRecorder(
            records,
            table,
            self._place.source.keyspace,
            self.topics.keyspace_id,
            self.hot.now_ms,
        )

    def _coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(
            self.hot.connections, self._place.source.keyspace, clock=self._given_clock
        )

    def _shares(self, group_id: str) -> SharePartitions:
        from .groups.share.share_partitions import SharePartitions

        return SharePartitions(
            self.hot.connections,
            group_id,
            self._place.source.keyspace,
            clock=self._given_clock,
        )

    def _producer_of(self) -> Callable[[], Producer]:
        return self.producer

    def _positions_of(self) -> Callable[[Topic], Mapping[str, Mapping[int, int]]]:
        return lambda topic: self._group_records.positions(topic.name, topic.topic_id)

    def _archived_of(self) -> Callable[[str], TopicLog] | None:
        return None if self._place.cold is None else self.archived.log

    def _cleaner(self, topic: Topic) -> Cleanup:
        from .cleanup.cleanup import Cleanup

        table = self._cold_table(topic)

        def hot() -> dict[int, HotSegments]:
            seen = self.hot.segments(topic.topic_partitions(), topic_id=topic.topic_id)
            return {tp.partition: offsets for tp, offsets in seen.items()}

        return Cleanup(
            topic,
            table,
            self._clock,
            hot=hot,
            current_topic=lambda: self.topics.renewed(topic),
            check_own=lambda: self.hot.check_own(topic, table),
        )

    def _forget(self, topic: Topic, report: CleanupReport) -> dict[int, OffsetRange]:
        """What follows in the hot tier when the cold one forgot something."""
        trimmed = self.archiver(topic).trim()
        for plan in report.retained:
            if plan.expired:  # if that was all there is, the open segment is gone as well
                self.hot.roll(plan.topic_partition, plan.log_start, topic.topic_id)
        return trimmed

    @property
    def _lists_cold(self) -> bool:
        """Whether the tables under the cold root can be listed without a Spark."""
        return self._place.cold is not None and self._place.cold.opens_in_tasks

    def _cold_beside(self, deleted: Iterable[Topic]) -> Catalogue:
        """What the cold root has of this keyspace and Redis does not know."""
        assert self._place.cold is not None
        known = {topic.topic_id for topic in (*deleted, *self.topics.list())}
        return self._place.cold.catalogue(self._place.source.keyspace, known=known)

    def _to_undelete(self, name: str, topic_id: str | UUID | None) -> Topic:
        """The deleted topic that is meant; the one that is there again, if there is no other."""
        try:
            return self._deleted_one(name, topic_id)
        except UnknownTopicOrPartitionError:
            for topic in self.topics.list():
                if topic.name == name and topic_id in (None, topic.topic_id, str(topic.topic_id)):
                    return topic
            raise

    def _purge(self, deleted: Topic, *, gone: bool = False) -> PurgedTopic:
        from .operate.restore import check_not_away, purge

        known = any(one.topic_id == deleted.topic_id for one in self.topics.deleted(deleted.name))
        topics = self.topics if known else None
        root, tiered = self._place.cold, deleted.config.tiered
        if not tiered and (root is None or not may_have_table(deleted, root)):
            return purge(deleted, topics, None)
        table = self._opened(deleted)
        if topics is not None and deleted.purged_ms is None and not gone:
            try:
                check_not_away(deleted, topics, table, "purge")
            except ArchivedElsewhereError as error:
                # Where other tables are, the folder is there, and somebody has removed this one.
                if error.where != table.where or not self._has_tables():
                    raise
        if not tiered and table.mirrored() is None:  # it was never archived
            return purge(deleted, topics, None)
        return purge(deleted, topics, table, root)

    def _has_tables(self) -> bool:
        """Whether any table of this keyspace lies under the cold root."""
        assert self._place.cold is not None
        found = self._place.cold.catalogue(self._place.source.keyspace)
        return any((found.topics, found.deleted, found.purged))

    def _removals(self) -> Iterator[Removal]:
        from .cleanup.cleanup import Removal

        root = self._place.cold
        kept = [one for one in self.topics.deleted() if root is not None or not one.config.tiered]
        for topic in kept:
            if topic.purged_ms is None:  # else it is told by who removes it
                self.topics.finish_deletion(topic)
        yield from self._expiries(kept)
        for topic in self.topics.list():
            if not topic.config.tiered:
                yield Removal(topic, self._vacuumed, "empty")
        if self._lists_cold:
            found = self._cold_beside(kept)
            yield from self._expiries(found.deleted)
            yield from self._leftovers(found)

    def _switched_off(self, names: Collection[str]) -> list[Topic]:
        root = self._place.cold
        return [
            topic
            for topic in map(self.topics.get, names)
            if root is not None
            and not topic.config.tiered
            and may_have_table(topic, root)
            and self._opened_once(topic).snapshot().version != NO_TABLE
        ]

    def _vacuumed(self, untiered: Topic) -> CleanupReport | None:
        """Have the table of a topic that is archived no more hold nothing, if it has one."""
        from .cleanup.cleanup import vacuumed

        table = self._mirror.untier(untiered)
        return None if table is None else vacuumed(untiered, table)

    def _reported(self, report: ArchiveReport) -> None:
        """Have its table shown by the catalog."""
        try:
            topic = self.topics.get(report.topic)
        except LakelogError as error:  # deleted, or Redis is away: the next report tries again
            logger.warning("%s is archived, but not known by name: %s", report.topic, error)
        else:
            self._names.show(topic)

    def _topics_at_once(self) -> int:
        """One where Spark runs all tasks: they share all cores then, and the job belongs to the
        caller's thread, so that interrupting it cancels the job.
        """
        here = isinstance(self._engine, InlineEngine)
        if isinstance(self._engine, AutoEngine):  # tables by name are Spark's
            here = self._place.cold is not None and self._place.cold.opens_in_tasks
        return TASKS_AT_ONCE if here else 1

    def _cancel(self) -> None:
        if isinstance(self._engine, AutoEngine):
            self._engine.cancel()

    def _seen_now(self, names: Sequence[str] | None) -> list[Topic]:
        """As `_tiered`; none if Redis does not answer now."""
        try:
            return self._tiered(names)
        except LakelogError as error:
            if not error.retriable:
                raise
            return []

    def _retain_when_due(self, topic: Topic) -> None:
        self._retain(topic, when_due=True)

    def _retain(self, topic: Topic, *, when_due: bool = False) -> None:
        if not topic.config.tiered:
            for topic_partition in topic.topic_partitions():
                self.hot.retain(topic_partition, when_due=when_due)

    def _naming(self, topic: Topic) -> AbstractContextManager[None]:
        return self.hot.naming(topic)

    def _opened(self, topic: Topic) -> ColdTable:
        return self._place.table(
            topic,
            engine=self._engine,
            newest_config=lambda: self.topics.renewed(topic).config_version,
        )

    def _recover(self, topic_partition: TopicPartition, at_least: int) -> None:
        # A producer has other partitions to serve, and comes back.
        self.log(topic_partition.topic).recover(topic_partition.partition, at_least, waits=False)


class _HotClock:
    """Redis's clock, so that "10 minutes ago" means the same to everyone."""

    def __init__(self, hot: HotLog) -> None:
        self._hot = hot

    def now_ms(self) -> int:
        return self._hot.now_ms()

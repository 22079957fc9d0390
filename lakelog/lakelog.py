"""`Lakelog`: where the tiers are, and the stages over them, ready to use."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from msgspec.structs import replace

from .base.back_off import PATIENCE_S
from .base.clock import Clock, SystemClock
from .base.notebook import warm_up
from .base.text_table import counted
from .cleanup import STEPS
from .cold.change import nothing_hot
from .cold.table import NO_TABLE, ColdSnapshot, ColdTable
from .engines.engine import TASKS_AT_ONCE, Engine, InlineEngine
from .errors import (
    ArchivedElsewhereError,
    DeliveryError,
    HotTierAccessError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    PartlyFailedError,
    UnknownTopicOrPartitionError,
    by_topic,
)
from .groups.admin import GroupAdmin, ShareGroupAdmin
from .groups.coordinator import GroupCoordinator
from .groups.group_records import GroupRecords
from .hot import HotLog, TopicRegistry
from .operate.acl.redis_rules import EVERY
from .operate.check.finding import TIERS
from .operate.group_recorder import GroupKeeper
from .place import ColdRoot, LogPlace, PathRoot
from .place.catalog_names import NamesInCatalog
from .place.cold_mirror import ColdMirror, may_have_table
from .read.hot_tier import HotTier, NothingHot
from .read.subscription import SeenTopics
from .read.topic_log import TopicLog
from .spark.auto_engine import AutoEngine, choose_engine
from .tracing.switch import tracer
from .values.arguments import checked_duration, optional_duration, optional_event, some_of
from .values.config import DATA_KEYS, QUOTA_COLD_BYTES, SCHEMAS, TopicConfig
from .values.offsets import HotSegments, Latest, PositionLike
from .values.reservation import FEW_OFFSETS
from .values.topic import GROUPS_TABLE, Topic, topic_names
from .values.topic_partition import OffsetRange, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from .archive.archiver import Archiver, Until
    from .archive.continuous import ContinuousArchive
    from .archive.report import ArchiveReport, Trouble
    from .cleanup.cleanup import Cleanup, Removal
    from .cleanup.plan import CleanupPlan
    from .cleanup.report import CleanupReport
    from .cold.answers import PurgedTopic
    from .cold.catalogue import Catalogue
    from .explore.explorer.widget import LogExplorer
    from .gateway.gateway import Gateway
    from .groups.share.share_partitions import SharePartitions
    from .ingest.delivery import BatchMetadata
    from .ingest.producer import Producer
    from .operate.acl.acl import Acl
    from .operate.acl.redis_rules import Role
    from .operate.check.check import Checked
    from .operate.check.finding import CheckReport
    from .operate.erasure.certificate import Erased
    from .operate.erasure.erase import HotSide
    from .operate.group_lag import GroupLag, GroupOffset
    from .operate.group_offsets import GroupOffsetsAdmin, ShareGroupOffsets
    from .operate.group_recorder import GroupRecorder, GroupsRecorded, RestoredGroup
    from .operate.groups_table import GroupsTable
    from .operate.load.load import Loaded
    from .operate.metrics.log_look import LogLook
    from .operate.restore import RestoredTopic, RestoredTopics
    from .operate.skip import Skips
    from .operate.status import Status
    from .operate.transfer.exporting import Progress
    from .operate.transfer.exporting import Source as ExportSource
    from .operate.transfer.importing import ImportedTopic
    from .operate.transfer.known_exports import ExportTold
    from .operate.transfer.manifest import Manifest
    from .place.tenants.tenant import QuotaUsage
    from .place.tenants.tenants import Tenants
    from .read.consumer import Consumer
    from .read.share_consumer import ShareConsumer
    from .spark.catalog.registration import Registered

logger = logging.getLogger(__name__)

#: How often a continuous run asks whether retention is due in untiered topics, which may be idle.
RETENTION_INTERVAL_S = 60

#: Of how many values a topic is made that is not there.
_SAMPLED_VALUES = 1_000

#: How long what the tables tell of their topics is believed when a topic is looked up.
CATALOGUE_LASTS_S = 10.0


class Lakelog:
    """A keyspace of topics: hot in Redis, cold in Delta tables. Made by `connect` or `embedded`.

    Without a Redis it is what is archived by itself: everything ends where the archive ends, and
    what needs a Redis is refused. Thread-safe. Closing it closes the connections, and stops the
    embedded Redis if this was its last user.

    Args:
        place: where the tiers lie, one of them at least.
        engine: where files at paths are read and written.
        clock: what retention and "10 minutes ago" are counted from; default: Redis's time.
        login: see `as_user`.
    """

    def __init__(
        self,
        place: LogPlace,
        engine: Engine | None = None,
        *,
        clock: Clock | None = None,
        login: tuple[str, str] | None = None,
    ) -> None:
        if engine is None:  # somebody's first line
            raise InvalidArgumentError(
                f"Lakelog({place!r}) opens no log: Lakelog.embedded({str(place)!r}) opens the one "
                "of a directory, with a Redis of its own, and Lakelog.connect(redis_url, cold) any "
                "other"
            )
        tracer()  # what the environment says of it and cannot be shows here
        self._place = place
        self._engine = engine
        self._given_clock = clock
        self._lock = threading.Lock()
        self._tables: dict[UUID, ColdTable] = {}
        self._newest: dict[str, UUID] = {}  # of each name, the creation that was opened last
        self._log_look: LogLook | None = None
        self._archived_topics = ArchivedTopics(place)
        self._archivers: dict[UUID, Archiver] = {}  # that no run has now, with what they know
        self._closing = ExitStack()  # what is let go of with the connections, last first
        self._has_produced = False
        self._names = NamesInCatalog(place.cold, self._cold_table, self.register)
        #: The hot tier; None: there is no Redis.
        self.redis: HotLog | None = None
        if place.hot is not None:
            self.redis = place.source.connect(clock, login)
        self._tier: HotTier
        self._clock: Clock
        self._recorder: GroupRecorder | None = None
        #: Which topics there are. Without a Redis, those that have tables, to `list` and `get`.
        self.topics: TopicRegistry
        if self.redis is None:
            self._clock = clock or SystemClock()
            self._tier = NothingHot(self._opened_table, self._clock)
            self.topics = cast("TopicRegistry", self._archived_topics)
            return
        self._tier, self._clock = self.redis, clock or self.redis
        keyspace = place.source.keyspace
        self._mirror = ColdMirror(place.cold, keyspace, self._opened_once, self.redis, place.tenant)
        self.topics = self.redis.topics(self._mirror)
        if place.cold is not None:
            self._recorder = self._recorder_of(self._group_records, place.cold)
        self._group_keeper = GroupKeeper(self.groups, self._group_records, self._recorder)

    # -- where it is -----------------------------------------------------------------------------

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
    ) -> Lakelog:
        """Connects to a Redis and a cold root; without a Redis, to what is archived there.

        Args:
            redis_url: ``redis://``, ``rediss://`` or ``unix://``; ``?cluster=true`` for a cluster,
                with commas between several servers. None: what is archived, by itself.
            cold: a folder, an object store's URL, or ``catalog.schema`` for tables by name, which
                only Spark writes and reads. None: only untiered topics can be used.
            location: where the tables of ``catalog.schema`` lie, if not where the catalog says.
            keyspace: what all keys begin with; default ``lakelog``. Without a Redis: whose tables
                are meant; default: a name that several keyspaces have is refused.
            tenant: whose topics are meant; see `tenants`. ``"shared"`` is always there.
            engine: what archiving, cleanup and verifying run on: ``"inline"``, ``"spark"``, an
                `Engine`, or ``"auto"``: the Spark that is running; else this process, and a Spark
                for 2 GiB or more.
            password_ref: ``env:NAME``, ``file:/PATH`` or ``databricks:SCOPE/KEY``, where every
                process that reads finds the password; see `secret_reference`.
            storage_options: what opens an object store, over environment variables of the same
                names; secrets as references such as ``env:NAME``.
            clock: for tests.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or not us.
            ColdTierError: deltalake is too old, or the root cannot be one.
            InvalidArgumentError: neither tier is named.
            TenantError: there is no such tenant.
        """
        place = LogPlace.of(
            redis_url,
            cold,
            location,
            keyspace=keyspace,
            password_ref=password_ref,
            storage_options=storage_options,
        )
        return cls.at(place, choose_engine(engine, place.object_stores), clock, tenant)

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
            TenantError: there is no such tenant; see `connect`.
        """
        from .place.embedded import EmbeddedPlace

        with ExitStack() as opened:
            place = opened.enter_context(closing(EmbeddedPlace(directory))).place
            chosen = choose_engine(engine, place.object_stores)
            lakelog = cls.at(place, chosen, tenant=tenant)
            lakelog.topics.first_offsets = FEW_OFFSETS  # its producers have the tables at hand
            lakelog._closing = opened.pop_all()
        return lakelog

    @classmethod
    def at(
        cls,
        place: LogPlace,
        engine: Engine,
        clock: Clock | None = None,
        tenant: str | None = None,
    ) -> Lakelog:
        """The log at a place whose Redis answers, if it has one; see `connect`."""
        if place.hot is None and place.cold is None:
            raise InvalidArgumentError(
                "neither a Redis nor a cold root was named, so there is no log to open: give "
                "redis_url, or cold, or both"
            )
        lakelog = cls(place if tenant is None else place.of_tenant(tenant), engine, clock=clock)
        warm_up("pandas", "lakelog.explore.explorer.widget")  # which half the first look takes
        if lakelog.redis is None:
            return lakelog
        try:
            lakelog.redis.now_ms()  # a wrong URL or password shows here, not at the first record
            if tenant is not None:
                lakelog._tenants_of(place).get(tenant)
        except BaseException:
            lakelog.close()
            raise
        return lakelog

    @property
    def hot(self) -> HotLog:
        """The hot tier.

        Raises:
            InvalidArgumentError: there is no Redis.
        """
        if self.redis is None:
            raise InvalidArgumentError(
                f"this log is what is archived ({self._place}), and what was asked for needs its "
                "Redis: connect with a redis_url"
            )
        return self.redis

    @cached_property
    def groups(self) -> GroupAdmin:
        """The groups of consumers: which there are, who is in them."""
        return GroupAdmin(
            self.hot.connections, self._place.source.keyspace, clock=self._given_clock
        )

    @cached_property
    def share_groups(self) -> ShareGroupAdmin:
        """The share groups: how far each has come, who holds what."""
        return ShareGroupAdmin(
            self.hot.connections, self._place.source.keyspace, clock=self._given_clock
        )

    @property
    def place(self) -> LogPlace:
        """Where the tiers lie; its `cold` is None where no cold root was given."""
        return self._place

    @property
    def archived(self) -> Lakelog:
        """What is archived, by itself: it is read whether Redis answers or not.

        Raises:
            InvalidArgumentError: no cold root was given.
        """
        return Lakelog.at(self._place.archived, self._engine, self._given_clock)

    def as_user(self, user: str, password: str) -> Lakelog:
        """The same log, opened anew as another user of its Redis; to be closed by the caller.

        The cold tier is opened as it is here: whose rights are meant there, no Redis knows.

        Raises:
            HotTierUnavailableError: Redis does not answer.
            HotTierAccessError: there is no such user, the password is another, or it has no right
                to what every connection does.
            InvalidArgumentError: this log has no Redis.
        """
        self.hot  # noqa: B018, there is one
        login = (user, password)
        opened = Lakelog(self._place, self._engine, clock=self._given_clock, login=login)
        opened.topics.first_offsets = self.topics.first_offsets
        try:
            opened.hot.now_ms()
        except BaseException:
            opened.close()
            raise
        return opened

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
            if self.redis is not None:
                self.redis.close()
            self._closing.close()

    def __enter__(self) -> Lakelog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except DeliveryError as lost:
            if error is None:
                raise
            logger.error("%s", lost)  # nothing must hide the error under way

    def __repr__(self) -> str:
        if self.redis is None:
            return f"Lakelog({self._place})"
        source = self._place.source
        return f"Lakelog({source}, {self._place}, keyspace={source.keyspace!r})"

    # -- appending and reading -------------------------------------------------------------------

    def producer(self, **config: Any) -> Producer:
        """A producer; keyword arguments are `ProducerConfig`'s fields.

        Raises:
            InvalidConfigError: no such field, or a value out of bounds.
        """
        from .ingest.producer import Producer, ProducerConfig

        hot, found = self.hot, tracer()
        self._has_produced = True
        kind: Callable[..., Producer] = Producer
        if found is not None:
            from .ingest.traced_producer import TracedProducer

            kind = partial(TracedProducer, tracer=found)
        return kind(
            hot,
            self.topics,
            self._recover,
            ProducerConfig.of(**config),
            clock=self._given_clock,
        )

    def append(
        self,
        topic: str,
        rows: object,
        *,
        key: str | None = None,
        timestamp: str | None = None,
        partition: str | int | None = None,
        value: str | None = None,
        zone: str | None = None,
        create: bool = False,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        **producing: Any,
    ) -> BatchMetadata:
        """Appends rows, each as a JSON object of all its fields.

        Args:
            topic: its name.
            rows: a frame or table of pandas, polars, Arrow (readers are read to their end) or
                DuckDB; or an iterable of mappings, dataclasses, named tuples, or models of pydantic
                or msgspec.
            key: the field that is the key, too: text and bytes as they are, others as JSON writes
                them.
            timestamp: the field that is the record's time, too: a time, ISO text, or epoch
                milliseconds. Default: now.
            partition: the field that says the partition, or the partition of all. Default: by key.
            value: the field that alone is the value, as it is (text or bytes).
            zone: of times without one, such as ``Europe/Berlin``.
            create: make the topic, if it is not there, with `partitions`, `config`, and the columns
                that the first thousand values have (``lakelog.value.columns``).
            producing: fields of `ProducerConfig`, such as ``acks``.

        Returns:
            Where each record went, in their order.

        Raises:
            InvalidArgumentError: they are no rows, a field is not there, a value is of a kind that
                JSON has nothing for, or a time has no zone. Nothing is appended.
            LakelogError: as `Producer.send_batch`, or of `TopicRegistry.create`.
        """
        from .ingest.rows import given_rows

        given = given_rows(
            rows, key=key, timestamp=timestamp, partition=partition, value=value, zone=zone
        )
        if create:
            self._make_for(topic, given.records["value"], partitions, config or {})
        with self.producer(**producing) as producer:
            return producer.send_batch(topic, given.records, partition=given.partition)

    def load(
        self,
        topic: str,
        path: str | Path,
        *,
        key: str | None = None,
        timestamp: str | None = None,
        partition: str | None = None,
        value: str | None = None,
        zone: str | None = None,
        time_format: str | None = None,
        create: bool = False,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        format: str | None = None,
        encoding: str | None = None,
        null: str | Sequence[str] = (),
        rejects: str | Path | None = None,
        resume: str | None = None,
        acks: str = "memory",
        timeout_s: float = 120.0,
        on_begin: Callable[[str], object] = lambda load_id: None,
        on_rows: Callable[[int], object] = lambda rows: None,
    ) -> Loaded:
        """Appends the rows of a file, each once, in bounded memory; see `append`.

        Args:
            path: of CSV (read by DuckDB), JSON lines, Parquet or Arrow, perhaps compressed. Of JSON
                lines, each is a value byte for byte.
            time_format: of times that are not ISO, as `datetime.strptime` takes it, such as
                ``%d.%m.%Y %H:%M``; of epoch seconds or milliseconds, ``s`` or ``ms``.
            format: ``csv``, ``jsonl``, ``parquet`` or ``arrow``; default: as the name tells.
            encoding: of text that is not UTF-8, such as ``cp1252``.
            null: a text of CSV that stands for no value, such as ``NA``, or several.
            rejects: a new file that takes lines that cannot be read, and rows that the topic does
                not take; default: one ends the load.
            timeout_s: how long it goes on trying while nothing can be appended.
            resume: the id of a load of this file that was broken off: it goes on where it was.
            on_begin: told the load's id, before the first rows are appended.
            on_rows: told how many more rows were read.

        Raises:
            InvalidArgumentError: the file or a row cannot be read; says where. The rows before it
                may be in the topic; a resumed load goes on behind them.
            RepeatDiffersError: the load that is resumed appended other rows.
            LakelogError: as `Producer.send`.
        """
        from .ingest.rows import RowFields
        from .operate.load.files import FileForm, format_of
        from .operate.load.load import check_load_id, load, new_load_id
        from .values.typed_time import zone_named

        file, now_ms = Path(path), self._clock.now_ms()
        where = None if zone is None else zone_named(zone)
        fields = RowFields(key, timestamp, partition, value, where, time_format)
        none = (null,) if isinstance(null, str) else tuple(null)
        found = None if create and resume is None else self.topics.get(topic)
        texts = frozenset(self._text_columns(found or topic))
        form = FileForm(format or format_of(file), encoding, none, texts)
        if found is not None and resume is not None:
            check_load_id(resume, found, now_ms)
        load_id = resume or new_load_id(topic, now_ms)

        def recover(topic: Topic, topic_partition: TopicPartition, at_least: int) -> None:
            self.log(topic).recover(topic_partition.partition, at_least, waits=False)

        def find_topic(values: pa.ChunkedArray) -> Topic:
            return found or self._make_for(topic, values, partitions, config or {})

        return load(
            self.hot,
            recover,
            find_topic,
            file,
            form,
            fields,
            load_id,
            acks=acks,
            timeout_s=timeout_s,
            rejects=None if rejects is None else Path(rejects),
            is_resumed=resume is not None,
            on_begin=on_begin,
            on_rows=on_rows,
        )

    def _text_columns(self, topic: Topic | str) -> list[str]:
        """The columns of text of a topic's values, if it is there."""
        from .codec.value_columns import value_schema

        try:
            there = self.topics.get(topic) if isinstance(topic, str) else topic
        except UnknownTopicOrPartitionError:
            return []
        columns = value_schema(there.config.value_columns)
        return [field.name for field in columns if str(field.type) == "string"]

    def _make_for(
        self, topic: str, values: pa.ChunkedArray, partitions: int, config: Mapping[str, object]
    ) -> Topic:
        """The topic, made with columns for values like these unless it is there."""
        from .codec.infer import infer

        if "lakelog.value.columns" not in config:
            columns = infer(values.slice(0, _SAMPLED_VALUES).cast("binary")).ddl
            config = {**config, **({"lakelog.value.columns": columns} if columns else {})}
        return self.topics.create(topic, partitions, config, if_not_exists=True)

    def consumer(self, *topics: str, **config: Any) -> Consumer:
        """A consumer of these topics; without any, `subscribe` or `assign` says what it reads.

        Args:
            topics: to subscribe to.
            config: fields of `ConsumerConfig`.

        Raises:
            InvalidConfigError: no such field, or a value that is not legal.
            InvalidTopicError: a name that no topic can have.
        """
        from .read.consumer import Consumer
        from .read.consumer_config import ConsumerConfig

        chosen = ConsumerConfig.of(**config)
        logs = partial(self.log, stored_values=chosen.stored_values)
        coordinator = None if self.redis is None else self._coordinator()
        consumer = Consumer(logs, chosen, self._seen_topics(), coordinator)
        if topics:
            consumer.subscribe(topics)
        return consumer

    def share_consumer(self, *topics: str, **config: Any) -> ShareConsumer:
        """A consumer of a share group, which takes records of topics from one queue with others.

        Args:
            topics: to subscribe to.
            config: fields of `ShareConsumerConfig`; ``group_id`` is needed.

        Raises:
            InvalidConfigError: no such field, a value that is not legal, or no group.
            InvalidArgumentError: not an id.
            UnknownTopicOrPartitionError: there is no such dead-letter topic.
            InvalidTopicError: a name that no topic can have.
        """
        from .groups.share.share_partitions import SharePartitions
        from .read.consumer_config import ShareConsumerConfig
        from .read.dead_letters import DeadLetters
        from .read.share_consumer import ShareConsumer

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

    def log(self, topic: str | Topic, *, stored_values: bool = False) -> TopicLog:
        """The topic as one log over both tiers.

        Args:
            stored_values: give encrypted values as they are stored, which takes no key.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
        """
        found = self._topic(topic)
        return TopicLog(
            found,
            self._tier,
            self._cold_table(found) if self.redis is None else self._table(found),
            clock=self._clock,
            frame_of=self._frame,
            explorer_of=self.explore,
            open_table=partial(self._opened_once, found),
            stored_values=stored_values,
        )

    def dataframe(
        self,
        topic: str | Topic,
        start: PositionLike | Mapping[int, PositionLike] = "earliest",
        end: PositionLike | Mapping[int, PositionLike] = "latest",
        **options: Any,
    ) -> DataFrame:
        """The records of a range as a Spark DataFrame; see `TopicLog.dataframe`.

        Args:
            options: its other arguments.
        """
        return self.log(topic).dataframe(start, end, **options)

    def sql(self, statement: str, *, zone: str = "UTC") -> pa.RecordBatchReader:
        """The rows of a query over topics as tables, in DuckDB's SQL; see `lakelog.read.sql`.

        Iterate it, or take all by ``read_all()``. What it reads of a topic, it reads as it goes.

        Args:
            zone: of times that are written without one, and of those that are given.

        Raises:
            MissingExtraError: duckdb is not installed.
            InvalidArgumentError: the statement cannot be run.
        """
        from .read.sql import query  # its imports cost, and few need them

        topics = {topic.name: topic.config.value_columns for topic in self.topics.list()}
        return query(statement, topics, lambda name: self.log(name).tiers(), zone=zone)

    def explore(
        self,
        topic: str | None = None,
        partition: int | None = None,
        at: PositionLike = "earliest",
        where: str = "",
        *,
        write: bool = False,
        main_thread: bool = False,
    ) -> LogExplorer:
        """A widget to look at topics and walk through their records, in a notebook.

        Args:
            topic: which to begin with; None: the first by name.
            partition: None: all of them, merged by time.
            at, where: where to begin, and which records to show; see `TopicLog.search`.
            write: whether a record may be sent again from it, edited or not.
            main_thread: tell the page what to show from the thread of this call alone, between
                cells, for a frontend that takes nothing from other threads.

        Raises:
            MissingExtraError: ipywidgets is not installed.
            UnknownTopicOrPartitionError: no such topic or partition.
            InvalidArgumentError: not a position, or not an expression; or `write` without a Redis.
        """
        from .explore.explorer import launch
        from .explore.explorer.view import Source

        if write and self.redis is None:
            raise InvalidArgumentError(
                "the archive alone takes no records: write=True needs a Lakelog that is connected "
                "to Redis"
            )
        is_hot = self.redis is not None
        source = Source(
            self.log,
            lambda: [found.name for found in self.topics.list()],
            self.archived.log if is_hot and self._place.cold is not None else None,
            self.producer if write else None,
            self._positions if is_hot else None,
        )
        return launch(source, topic, partition, at, where, main_thread=main_thread)

    def register(
        self, topic: str | Topic, schema: str | None = None, *, spark: SparkSession | None = None
    ) -> Registered:
        """Makes a topic's table known in a schema of a catalog, with its two views: the archived
        records decoded (``{topic}_view``), and the last value of each key (``{topic}_latest``).

        Args:
            schema: ``catalog.schema``, which exists; default: the one this log is connected to.
            spark: default the session there is, or a local one.

        Raises:
            ForeignTableError: something else has one of the names; what has it was not touched.
            ColdTierError: nothing is archived yet, no such schema, or no right to it.
            InvalidArgumentError: an untiered topic, or not a schema.
        """
        from .spark.catalog.registration import register_topic
        from .spark.session import session

        found = self._topic(topic)
        table, root = self._cold_table(found), self._place.cold
        assert root is not None  # the table lies there
        schema = root.schema if schema is None else schema
        if schema is None:
            raise InvalidArgumentError("name the catalog.schema that the table gets its name in")
        with self._naming(found):
            return register_topic(spark or session(), root, schema, found, table)

    # -- archiving and forgetting ----------------------------------------------------------------

    def archive(
        self,
        topics: str | Iterable[str] | None = None,
        until: Until = Latest(),  # noqa: B008, an immutable value
        *,
        patience: timedelta = timedelta(seconds=PATIENCE_S),
        adopt: bool = False,
    ) -> list[ArchiveReport]:
        """Archives what is there now, or what lies before a bound; a report a topic.

        A topic that fails does not stop the others; one whose tier is busy or away is tried again
        after them. What a catalog does not take is among a report's `troubles`, and fails nothing.
        Of untiered topics, it forgets what their retention says, when that is due. An interrupted
        call cancels jobs of Spark, and lets what is under way here finish, for 2.2 s at most.

        Args:
            topics: names; None for all that are tiered.
            until: see `Archiver.run_once`.
            patience: how long what fails but may be tried again is.
            adopt: archive into these tables from now on, also if a topic was archived into
                another one before, which is gone for good (see `ArchivedElsewhereError`).

        Raises:
            PartlyFailedError: something could not be archived; the rest was, and every report and
                every error is in this one.
            InvalidArgumentError: `until` bounds nothing.
            LakelogError: if `topics` is one name, that topic's own error; see `Archiver.run_once`.
        """
        from .archive.archiver import check_until
        from .archive.topics_run import TopicsRun

        check_until(until)
        patience_s = checked_duration("patience", patience).total_seconds()
        _ = self.hot  # else every topic would be refused by itself
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
                run.do(topic, partial(self._retain, when_due=True))
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

        No outage ends it, and no topic that fails stops another; see `ContinuousArchive`. It also
        merges the small files that frequent commits leave (see `plan_optimize`).

        Args:
            topics: names; None for all that are tiered, also those created meanwhile.
            stop: set it to archive what is left and end; what hangs is left alone after 2.5 s.
            max_duration: ends by itself after so long.
            tell: told of what fails, when it begins and once a minute while it lasts.
            cleaned: have it clean up as well, as `clean_continuously` does, and tell this.

        Raises:
            UnknownTopicOrPartitionError, InvalidArgumentError: a name is no topic's, or one that is
                not archived.
            ArchiveUnfinishedError: while iterating, at the end: something could not be archived.
        """
        from .archive.continuous import ContinuousArchive

        names = None if topics is None else topic_names(topics)
        try:
            known = self._tiered(names)
        except LakelogError as error:
            if not error.retriable:
                raise
            known = []  # Redis does not answer now
        for topic in known:
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
                    self._retain(topic, when_due=True)

        def clean() -> float:
            try:
                reports: Sequence[CleanupReport] = self.cleanup(names)
            except PartlyFailedError as error:
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
            current_topic=lambda: self._with_schemas(self.topics.renewed(found)),
            may_make=self._place.check_may_make,
        )

    def cleanup(
        self, topics: str | Iterable[str] | None = None, *, steps: Sequence[str] = STEPS
    ) -> list[CleanupReport]:
        """Forgets what the topics' policies say, and keeps the cold tier fast; a report a topic.

        Retain, compact, optimize, vacuum, then the hot tier forgets what the log starts have
        passed, and deleted topics that are kept no longer go. Safe at any time and beside anything.

        Without Redis, the settings are those that archiving put into the tables. A partition's
        newest segment never expires then, since only Redis knows whether all of it is archived.

        Args:
            topics: names; None for all that are tiered.
            steps: some of ``retain``, ``compact``, ``optimize``, ``vacuum``.

        Raises:
            UnknownTopicOrPartitionError, AmbiguousTopicError: no topic of that name; several.
            PartlyFailedError: something failed (a damaged file, a table that contradicts itself);
                the rest was done, and `reports` is in the error.
        """
        from .cleanup.cleanup import clean_all

        broken: Sequence[Any] = ()
        removals: Iterable[Removal]
        if topics is not None:
            chosen, emptied = self._named_cleaners(topics)
            removals = self._emptied(emptied)
        elif self.redis is None:
            found = self._archived_topics.catalogue()
            chosen = [self._cleaner(topic) for topic in found.topics]
            broken = found.untold(self._place)
            removals = [
                *self._expiries(found.deleted),
                *self._leftovers(found),
                *self._emptied(found.untiered),
            ]
        else:
            chosen, removals = self._cleaners(), self._removals()
            for topic in self.topics.list():
                self._retain(topic)
        if self.redis is None:
            return clean_all(chosen, steps, broken=broken, removals=removals)
        self._group_keeper.attend()
        try:
            return clean_all(
                chosen, steps, self._forget, removals=removals, tell=self._tell_cleaned
            )
        finally:
            try:
                if QUOTA_COLD_BYTES in self.topics.defaults():
                    self.quotas()  # archivers that keep to it know then what was freed
            except LakelogError as error:
                logger.warning("what the tables take was not counted anew: %s", error)
            if topics is None:
                self._forget_counts()

    def clean_continuously(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        steps: Sequence[str] = STEPS,
        stop: threading.Event | None = None,
        max_duration: timedelta | None = None,
    ) -> Iterator[CleanupReport]:
        """Cleans up at once, and every ``log.retention.check.interval.ms`` until stopped.

        No outage of Redis or of the store ends it. Gives the reports that have something to tell.

        Args:
            topics, steps: as for `cleanup`.
            stop: set it to end; a step that takes longer than 2.5 s is left to the next run.
            max_duration: ends by itself after so long.

        Raises (while iterating):
            LakelogError: the first round is refused, for what will not be over; see `cleanup`.
            PartlyFailedError: something could not be done in the last round.
        """
        from .cleanup.continuous import clean_continuously

        names = None if topics is None else topic_names(topics)
        return clean_continuously(
            lambda: self.cleanup(names, steps=steps),
            self._cleanup_interval_ms,
            stop=optional_event("stop", stop),
            max_duration=optional_duration("max_duration", max_duration),
        )

    def cleanup_plan(
        self,
        topics: str | Iterable[str] | None = None,
        settings: Mapping[str, object | None] | None = None,
    ) -> list[CleanupPlan]:
        """What `cleanup` would do, and why; changes and reads no data.

        Args:
            topics: names; None for all that are tiered.
            settings: what if these settings were changed (None: put back to the default).
        """
        if topics is not None:
            from .cleanup.plan import CleanupPlan

            cleaners, emptied = self._named_cleaners(topics)
            nothing = [CleanupPlan(topic.name, (), (), (), {}) for topic in emptied]
            return [*(one.plan(settings) for one in cleaners), *nothing]
        plans = [one.plan(settings) for one in self._cleaners()]
        return [*plans, *(self._plan_purge(topic) for topic in self._expired(self.deleted()))]

    def erase(
        self,
        topic: str | Topic,
        keys: str | bytes | Iterable[str | bytes] | None = None,
        *,
        where: str | None = None,
        dry_run: bool = False,
        quarantine: bool = False,
    ) -> Erased:
        """Erases the records with a key, or those that match, for good: a right to be forgotten.

        Offsets stay, and gaps appear; a partition's last record keeps its offset and loses the
        rest. Files that hold a match are written anew without it, and the old ones deleted at once.
        What matches below where the log ended at the beginning is gone afterwards. Safe beside
        anything; doing it again does what is left. Without a Redis, what Redis holds stays.

        Args:
            keys: whole keys, texts as UTF-8.
            where: an expression instead; see `TopicLog.search`.
            dry_run: only count; changes nothing.
            quarantine: give up, as a whole, files that were removed and cannot be read, and what an
                older version put in quarantine. Else they are only told of.

        Returns:
            What went and what could not be reached; `lakelog.operate.erasure.certificate` makes a
            certificate of it.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
            InvalidArgumentError: not one of the two, an empty one, an untiered topic, or a
                condition on encrypted values.
            PartlyFailedError: something could not be done; the rest was, and is in its `report`.
            CommitConflictError: others rewrote the same files each time; doing it again goes on.
        """
        from .operate.erasure.condition import RecordCondition
        from .operate.erasure.erase import RecordErasure, untiered
        from .version import __version__

        condition = RecordCondition.of(keys, where)
        found = self._topic(topic)
        if not found.config.tiered:
            raise untiered(found)
        if condition.asks_values and found.config.text(DATA_KEYS):
            raise InvalidArgumentError(
                f"values of topic {found.name!r} are encrypted, and erasing decrypts none, so they "
                "cannot be what is asked for: erase by keys, offsets, times or headers. `lakelog "
                "consume --where` finds the keys of records by their values",
                topic=found.name,
            )
        table, side = self._cold_table(found), self._hot_side(found)
        erasure = RecordErasure(
            *(found, table, condition, side, __version__, self._clock.now_ms, quarantine)
        )
        try:
            erased = erasure.plan() if dry_run else erasure.run()
        except PartlyFailedError as error:
            told = self._exports_told(found, forgets=False)
            raise error.changed(report=replace(error.report, exports=told)) from error
        return replace(erased, exports=self._exports_told(found, forgets=not dry_run))

    # -- deleted and lost topics -----------------------------------------------------------------

    def deleted(self) -> list[Topic]:
        """The deleted topics of which something is kept, in the order of their deletions.

        ``deleted_ms`` says when that was, ``kept_until_ms`` until when `undelete` brings all of
        it back; after that, cleanup removes it.

        Raises:
            ColdTierError: the cold root cannot be listed.
        """
        if self.redis is None:
            return list(self._archived_topics.catalogue().deleted)
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
            PolicyViolationError: nothing of it is left, or it is being removed for good.
            ColdTierError: its table cannot be read or committed to; nothing was changed.
        """
        from .operate.restore import undelete

        topic = self._to_undelete(name, topic_id)
        root = self._place.cold
        is_cold = topic.config.tiered or (root is not None and may_have_table(topic, root))
        table = self._opened(topic) if is_cold else None
        return undelete(topic, self.hot, self.topics, table, gone=gone)

    def purge(
        self, name: str, topic_id: str | UUID | None = None, *, gone: bool = False
    ) -> PurgedTopic:
        """Removes what is kept of a deleted topic, now and for good, and lists what is left.

        Readers and archivers that still use it end in an error. A call that was cut short is
        finished by the next one. How long a catalog lets UNDROP bring tables back is its affair.

        Args:
            topic_id, gone: as for `undelete`.

        Raises:
            UnknownTopicOrPartitionError: no deleted topic of that name is kept.
            PolicyViolationError: it came back meanwhile; nothing was removed.
            ArchivedElsewhereError: its table is not there; see `gone`. Nothing was removed.
            ColdTierError: some of it could not be removed; doing it again goes on.
        """
        return self._purge(self._deleted_one(name, topic_id), gone=gone)

    def restorable(self) -> list[Topic]:
        """The topics that Redis has lost and `restore` would bring back, as their tables tell them.

        Reads the properties of every table under the cold root.

        Raises:
            ColdTierError: the root cannot be listed.
        """
        if self.redis is None or self._place.cold is None:
            return []
        catalogue, topics = self._catalogue(), self.topics.list()
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

        Their logs go on above every offset that was ever given out. All groups come back, too, as
        they were recorded last (see `record_groups`). What no table tells is gone: records and
        topics that were not archived. What is there stays, so doing it again does nothing.

        Args:
            topics: names; None for all that were lost.

        Returns:
            The topics; ``groups`` are what came back of groups.

        Raises:
            UnknownTopicOrPartitionError: no table of that name lies there.
            AmbiguousTopicError: tables of several Redises' keyspaces of this name do.
            PartlyFailedError: something could not be restored (the keyspace has got other topics,
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
        hot, catalogue = self.hot, self._catalogue()
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
                restored.append(restore(topic, hot, self.topics, self._cold_table(topic)))
            except LakelogError as error:
                errors[topic.name] = error
        assert self._recorder is not None  # there is a cold root
        try:
            restored.groups = tuple(self._recorder.bring_back())
        except LakelogError as error:
            errors[GROUPS_TABLE] = error
        if errors:
            raise PartlyFailedError(
                f"{counted(len(restored), 'topic')} {'was' if len(restored) == 1 else 'were'} "
                f"restored, but not {by_topic(errors)}",
                restored=tuple(restored),
                errors=errors,
                groups=restored.groups,
            )
        return restored

    def export(
        self,
        to: str | Path,
        topics: str | Iterable[str] | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Manifest:
        """Writes topics out of the log: as a folder, or as one archive file.

        Each topic is there as at one moment, all of its log as one Delta table that any engine
        reads; with its settings and, of a log with a Redis, what is not archived yet and how far
        groups have come. ``manifest.json`` names each file with its checksum, and is written last.
        A call that was cut short is finished by the next one, which brings an earlier export up to
        date.

        Args:
            to: a folder, an object store's URL, or a file whose name ends in ``.tar``.
            topics: names; None for all.
            storage_options: open the object store; default: those of the cold root.
            progress: told of the bytes that are copied.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
            InvalidArgumentError: `to` is in the cold root, or holds something else; or a topic is
                archived into a table by name.
            MissingFileError, CorruptRecordError: a table's file is gone or damaged.
            ArchivedElsewhereError: a topic's table is away, or another one is the topic's.
            ColdTierError: a table cannot be read, or the export cannot be written.
        """
        from .operate.transfer.exporting import export
        from .operate.transfer.known_exports import KnownExports
        from .operate.transfer.places import fitting_options, open_writer
        from .version import __version__

        found = self._topics(topics)
        root = self._place.cold
        path_root = root if isinstance(root, PathRoot) else None
        if storage_options is None and path_root is not None:
            storage_options = fitting_options(to, path_root.storage)
        writer = open_writer(
            to, storage_options, None if path_root is None else path_root.storage.root
        )
        exported_ms = self._clock.now_ms()
        sources = self._export_sources(found)
        if path_root is not None:
            KnownExports(path_root.storage).note(writer.where, found, exported_ms)
        return export(
            sources, writer, exported_ms=exported_ms, version=__version__, progress=progress
        )

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

        Each is a topic of its own: it has a new id, and its log goes on where the export ends.
        Groups come along. Each file is checked against its checksum, and no topic shows before all
        of it is there. Doing it again, or after a call that was cut short, does the rest.

        Args:
            source: what `export` was given.
            topics: names in the export; None for all.
            name: what the one topic is called here; default: as it was.
            config: settings that it gets besides.
            storage_options, progress: as for `export`.

        Raises:
            CorruptRecordError: it is unfinished, damaged or forged; nothing of it was imported.
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

    # -- how it is doing -------------------------------------------------------------------------

    def status(self, topics: str | Iterable[str] | None = None) -> Status:
        """Where every partition stands, and how the hot tier is doing.

        A topic that cannot be looked at (no cold root was given, a table that contradicts itself,
        or does not answer for a minute) is among the `failures`; the others are told all the same.
        """
        from .operate.status import TopicFailure, status

        untold: Sequence[TopicFailure] = ()
        if self.redis is None and topics is None:
            found = self._archived_topics.catalogue()
            asked: Iterable[Topic] = found.topics
            untold = [TopicFailure(str(e.path), e) for e in found.untold(self._place)]
        else:
            asked = self._topics(topics)
        looks = self.log_look.tables
        seen = status(self._tier, asked, self._table, redis=self.redis, looks=looks)
        told = {one.topic for one in seen.troubles}
        own = [one for one in self.group_troubles() if one.topic not in told]
        return replace(seen, troubles=(*seen.troubles, *own), failures=(*seen.failures, *untold))

    def metrics(self, topics: str | Iterable[str] | None = None) -> pa.Table:
        """What there is to measure of the log now, and what this process has counted of its work.

        Without a Redis, only what the tables and this process tell. `lakelog help metrics` lists
        the metrics with their units, labels and Kafka's names.

        Args:
            topics: names; None for all. Counts of the process are those of all topics.

        Returns:
            Rows of `METRICS_SCHEMA`: ``metric``, ``kind``, ``unit``, ``labels`` (a map) and
            ``value``.

        Raises:
            UnknownTopicOrPartitionError: no such topic. A topic that is there and cannot be looked
                at raises nothing: it has a row ``lakelog_topic_failed``.
        """
        from .base.metrics import COUNTS
        from .operate.metrics.table import metrics_table

        return metrics_table(COUNTS.beside(self.log_look.look(self._topics(topics))))

    def gateway(
        self, listen: str = "127.0.0.1:9092", *, advertise: str | None = None, **settings: Any
    ) -> Gateway:
        """Kafka's protocol in front of this log, for any of Kafka's clients; see `Gateway`.

        It serves from here on until it is closed, which is to be before this log is::

            with lake.gateway("127.0.0.1:0") as gateway:
                settings = {"bootstrap.servers": gateway.bootstrap_servers}
                producer = confluent_kafka.Producer(settings)

        Args:
            listen: ``HOST:PORT``; port 0 for one that is free.
            advertise: ``HOST:PORT`` that clients are told to connect to; None: `listen`.
            settings: others of `GatewaySettings`.

        Raises:
            InvalidArgumentError: an address is none, or is taken; a setting is not legal.
        """
        from .base.address import Address
        from .gateway.gateway import Gateway
        from .gateway.settings import GatewaySettings
        from .values.config import check_names

        told = None if advertise is None else Address.parse(advertise)
        check_names(GatewaySettings, "gateway", settings)
        given = GatewaySettings(listen=Address.parse(listen), advertise=told, **settings)
        return Gateway(self, given).start()

    @property
    def log_look(self) -> LogLook:
        """What `metrics` and `status` look at the log with; the first look opens all tables."""
        from .operate.metrics.log_look import LogLook

        with self._lock:
            if self._log_look is None:
                records = None if self.redis is None else self._group_records
                self._log_look = LogLook(self.redis, self._table, records, self._tier.now_ms)
            return self._log_look

    def check(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        repair: bool = False,
        tiers: Collection[str] = TIERS,
        progress: Callable[[int], None] | None = None,
    ) -> CheckReport:
        """Whether everything is as it should be; all records are read and compared.

        The README of `lakelog.operate` says what is compared. Damage is an answer, not an error,
        and so is a tier that does not answer. Runs beside everything else, in bounded memory, on
        the engine that the log was connected with.

        Args:
            topics: names; None for all, and for what else lies under the cold root.
            repair: put right what can be derived from what is sound, and check again. No record is
                deleted, and no offset or log start changes.
            tiers: ``hot``, ``cold`` or both.
            progress: called with the number of records read since the last call.

        Raises:
            UnknownTopicOrPartitionError: no topic of that name.
        """
        from .operate.check.check import check, repairable, with_unreachable
        from .operate.check.finding import CheckReport
        from .operate.check.repair import repair as mend

        tiers = some_of("a tier", tiers, TIERS)
        try:
            asked = None if topics is None else self._topics(topics)
            checked = self._checked()
            report = check(checked, asked, tiers, progress)
            wrong = list(repairable(report)) if repair else []
            if not wrong:
                return report
            done = mend(checked, wrong, self.topics.list() if asked is None else asked)
            return replace(check(checked, asked, tiers, progress), repairs=tuple(done))
        except (HotTierUnavailableError, HotTierAccessError) as error:
            report = CheckReport((), ())
            if self._place.cold is not None:
                report = self.archived.check(topics, repair=repair, tiers=tiers, progress=progress)
            return with_unreachable(report, error)

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

    # -- groups ----------------------------------------------------------------------------------

    def group_lags(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        choose: Callable[[Sequence[GroupOffset]], Iterable[GroupOffset]] | None = None,
    ) -> list[GroupLag]:
        """How far every group, share groups too, is behind in each partition, and who is in it.

        Reads the first unread record of each position that is behind, for 20 s; what there was no
        time for has no `lag_ms`. Only partitions of which a group has committed something, and of
        topics that can be looked at.

        Args:
            topics: names; None for all.
            choose: which get that closer look, and in which order; default: all.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        from .operate.group_lag import GroupLags

        behind = GroupLags(self._group_records, self.groups, self.share_groups, self.log)
        names = None if topics is None else {topic.name for topic in self._topics(topics)}
        seen = behind.offsets(names)
        return behind.lags(seen if choose is None else choose(seen))

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

    def record_groups(self) -> GroupsRecorded:
        """Records what groups have committed in the table ``_lakelog_groups`` of the cold root.

        `archive`, `archive_continuously` and `cleanup` do it besides, the second of them every 30
        seconds; it is for who runs none of them. If nothing has changed, nothing is written.

        Raises:
            ColdTierError: the table cannot be read, or takes no commit.
            InvalidArgumentError: no cold root was given.
        """
        if self._recorder is None:
            _ = self.hot  # refused, if it is that which there is not
            raise InvalidArgumentError(
                "groups are recorded in a table under the cold root, and none was given; pass "
                "cold=… (--cold)"
            )
        return self._recorder.record()

    def group_troubles(self) -> tuple[Trouble, ...]:
        """Why what groups have committed is not recorded, as found when this object last tried.

        Its topic is the table, ``_lakelog_groups``. Other archivers' are among the troubles of
        `status`.
        """
        trouble = None if self.redis is None else self._group_keeper.trouble()
        return () if trouble is None else (trouble,)

    # -- how -------------------------------------------------------------------------------------

    def _topic(self, topic: str | Topic) -> Topic:
        return topic if isinstance(topic, Topic) else self.topics.get(topic)

    def _topics(self, topics: str | Iterable[str] | None) -> list[Topic]:
        if topics is None:
            return self.topics.list()
        return [self.topics.get(name) for name in topic_names(topics)]

    def _with_schemas(self, topic: Topic) -> Topic:
        """The topic, with what a registry has of its schemas by now."""
        from .codec.formats.schema_registry import newest_schemas

        schemas = newest_schemas(topic)
        if schemas is None:
            return topic
        try:
            return self.topics.alter(topic.name, {SCHEMAS: schemas})
        except LakelogError as error:  # who archives may not be allowed to, or somebody else did
            logger.warning("%s: its schemas are not kept: %s", topic.name, error.message)
            return topic

    def _tiered(self, topics: str | Iterable[str] | None) -> list[Topic]:
        found = self._topics(topics)
        return found if topics is not None else [t for t in found if t.config.tiered]

    def _table(self, topic: Topic) -> ColdTable | None:
        """The topic's cold tier; None for an untiered one.

        Raises:
            InvalidArgumentError: it is tiered, but no cold root was given.
        """
        return self._opened_once(topic) if topic.config.tiered else None

    def _cold_table(self, topic: Topic) -> ColdTable:
        table = self._table(topic)
        if table is None:
            raise InvalidArgumentError(
                f"topic {topic.name!r} has no cold tier (remote.storage.enable=false): there is "
                "nothing to archive it to, and its hot tier forgets by itself",
                topic=topic.name,
            )
        return table

    def _opened_once(self, topic: Topic) -> ColdTable:
        with self._lock:
            if topic.topic_id not in self._tables:
                self._tables[topic.topic_id] = self._opened(topic)
            self._newest[topic.name] = topic.topic_id
            return self._tables[topic.topic_id]

    def _opened_table(self, name: str, topic_id: UUID | None) -> ColdTable:
        """A table that a log was opened with: to look at where it ends lists no place again."""
        with self._lock:
            newest = self._newest.get(name) if topic_id is None else topic_id
            opened = None if newest is None else self._tables.get(newest)
        return opened or self._cold_table(self.topics.get(name))

    def _opened(self, topic: Topic) -> ColdTable:
        newest = None if self.redis is None else lambda: self.topics.renewed(topic).config_version
        return self._place.table(topic, engine=self._engine, newest_config=newest)

    def _catalogue(self, known: Collection[UUID] = ()) -> Catalogue:
        """What lies under the cold root of this keyspace, but for topics that are known."""
        assert self._place.cold is not None
        keyspace = self._place.archived.keyspace
        return self._place.cold.catalogue(keyspace, known=known)

    def _cold_beside(self, deleted: Iterable[Topic]) -> Catalogue:
        """What the cold root has of this keyspace and Redis does not know."""
        return self._catalogue({topic.topic_id for topic in (*deleted, *self.topics.list())})

    @property
    def _lists_cold(self) -> bool:
        """Whether the tables under the cold root can be listed without a Spark."""
        return self._place.cold is not None and self._place.cold.opens_in_tasks

    def _has_tables(self) -> bool:
        """Whether any table of this keyspace lies under the cold root."""
        found = self._catalogue()
        return any((found.topics, found.deleted, found.purged))

    def _naming(self, topic: Topic) -> AbstractContextManager[None]:
        """See `HotLog.naming`: nobody is kept away without a Redis."""
        return nullcontext() if self.redis is None else self.redis.naming(topic)

    def _seen_topics(self) -> SeenTopics:
        return SeenTopics(self.topics.list, None if self.redis is None else self.topics.version)

    @cached_property
    def _group_records(self) -> GroupRecords:
        return GroupRecords(self.hot.connections, self._place.source.keyspace, self._given_clock)

    def _positions(self, topic: Topic) -> Mapping[str, Mapping[int, int]]:
        """How far groups have come in a topic."""
        return self._group_records.positions(topic.name, topic.topic_id)

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

    def _tenants_of(self, place: LogPlace) -> Tenants:
        from .place.tenants.tenants import Tenants

        def opened(name: str) -> Lakelog:
            return Lakelog(place.of_tenant(name), self._engine, clock=self._given_clock)

        return Tenants(self.hot.connections, place, self.hot.now_ms, opened)

    def _frame(self, *given: Any, **options: Any) -> DataFrame:
        from .spark.dataframe import dataframe

        return dataframe(self._place, *given, **options)

    def _recover(self, topic_partition: TopicPartition, at_least: int) -> None:
        # A producer has other partitions to serve, and comes back.
        self.log(topic_partition.topic).recover(topic_partition.partition, at_least, waits=False)

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

    def _retain(self, topic: Topic, *, when_due: bool = False) -> None:
        if not topic.config.tiered:
            for topic_partition in topic.topic_partitions():
                self.hot.retain(topic_partition, when_due=when_due)

    def _reported(self, report: ArchiveReport) -> None:
        """Have its table shown by the catalog."""
        try:
            topic = self.topics.get(report.topic)
        except LakelogError as error:  # deleted, or Redis is away: the next report tries again
            logger.warning("%s is archived, but not known by name: %s", report.topic, error)
        else:
            self._names.show(topic)

    def _forget(self, topic: Topic, report: CleanupReport) -> dict[int, OffsetRange]:
        """What follows in the hot tier when the cold one forgot something."""
        trimmed = self.archiver(topic).trim()
        for plan in report.retained:
            if plan.expired:  # if that was all there is, the open segment is gone as well
                self.hot.roll(plan.topic_partition, plan.log_start, topic.topic_id)
        return trimmed

    def _cleaner(self, topic: Topic) -> Cleanup:
        from .cleanup.cleanup import Cleanup

        table, redis = self._cold_table(topic), self.redis
        if redis is None:
            return Cleanup(topic, table, self._clock)

        def hot() -> dict[int, HotSegments]:
            seen = redis.segments(topic.topic_partitions(), topic_id=topic.topic_id)
            return {tp.partition: offsets for tp, offsets in seen.items()}

        return Cleanup(
            topic,
            table,
            self._clock,
            hot=hot,
            current_topic=lambda: self.topics.renewed(topic),
            check_own=lambda: redis.check_own(topic, table),
        )

    def _cleaners(self) -> list[Cleanup]:
        return [self._cleaner(topic) for topic in self._tiered(None)]

    def _named_cleaners(self, topics: str | Iterable[str]) -> tuple[list[Cleanup], list[Topic]]:
        """The cleanups of topics, and those of them of which no more than files are left.

        Raises:
            InvalidArgumentError: one was never archived.
        """
        names = topic_names(topics)
        emptied = {topic.name: topic for topic in self._switched_off(names)}
        cleaners = [self._cleaner(self.topics.get(name)) for name in names if name not in emptied]
        return cleaners, list(emptied.values())

    def _switched_off(self, names: Collection[str]) -> list[Topic]:
        """Those that are archived no more, and have a table."""
        if self.redis is None:
            return [one for one in self._archived_topics.catalogue().untiered if one.name in names]
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

        if self.redis is None:
            return vacuumed(untiered, self._opened_once(untiered))
        table = self._mirror.untier(untiered)
        return None if table is None else vacuumed(untiered, table)

    def _emptied(self, untiered: Iterable[Topic]) -> list[Removal]:
        """What tables still hold of topics that are archived no more."""
        from .cleanup.cleanup import Removal

        step = "vacuum" if self.redis is None else "empty"
        return [Removal(topic, self._vacuumed, step) for topic in untiered]

    def _cleanup_interval_ms(self) -> int:
        """``log.retention.check.interval.ms`` as it is set now, but a second at least."""
        configs = [topic.config for topic in self._topics(None)] or [TopicConfig()]
        return max(1000, min(config.retention_check_interval_ms for config in configs))

    def _tell_cleaned(self, topic: Topic, report: CleanupReport) -> None:
        """Have whoever watches the log, from whatever process, know what a cleanup counted."""
        from .operate.metrics.log_look import tell_cleanup

        try:
            tell_cleanup(self.hot.cleanups(), topic, report)
        except LakelogError as error:
            logger.warning("what the cleanup of %s counted is not told: %s", topic.name, error)

    def _forget_counts(self) -> None:
        """Of cleanups of topics that are gone."""
        try:
            self.hot.cleanups().retain(topic.topic_id for topic in self.topics.list())
        except LakelogError as error:
            logger.debug("what cleanups of deleted topics counted is kept: %s", error)

    def _purge(self, deleted: Topic, *, gone: bool = False) -> PurgedTopic:
        from .operate.restore import check_not_away, purge

        if self.redis is None:
            return purge(deleted, None, self._opened(deleted), self._place.cold)
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

    def _deleted_one(self, name: str, topic_id: str | UUID | None) -> Topic:
        from .operate.restore import chosen

        found = [topic for topic in self.deleted() if topic.name == name]
        return chosen(name, None if topic_id is None else str(topic_id), found)

    def _to_undelete(self, name: str, topic_id: str | UUID | None) -> Topic:
        """The deleted topic that is meant; the one that is there again, if there is no other."""
        try:
            return self._deleted_one(name, topic_id)
        except UnknownTopicOrPartitionError:
            for topic in self.topics.list():
                if topic.name == name and topic_id in (None, topic.topic_id, str(topic.topic_id)):
                    return topic
            raise

    def _removals(self) -> Iterator[Removal]:
        root = self._place.cold
        kept = [one for one in self.topics.deleted() if root is not None or not one.config.tiered]
        for topic in kept:
            if topic.purged_ms is None:  # else it is told by who removes it
                self.topics.finish_deletion(topic)
        yield from self._expiries(kept)
        yield from self._emptied(topic for topic in self.topics.list() if not topic.config.tiered)
        if self._lists_cold:
            found = self._cold_beside(kept)
            yield from self._expiries(found.deleted)
            yield from self._leftovers(found)

    def _expiries(self, deleted: Iterable[Topic]) -> Iterator[Removal]:
        """The deleted topics that are kept no longer."""
        from .cleanup.cleanup import Removal

        return (Removal(topic, _as_report(self._purge)) for topic in self._expired(deleted))

    def _leftovers(self, found: Catalogue) -> Iterator[Removal]:
        """What is left of removed tables."""
        from .cleanup.cleanup import Removal

        return (Removal(place, _as_report(self._swept)) for place in found.purged)

    def _expired(self, deleted: Iterable[Topic]) -> list[Topic]:
        from .operate.restore import is_expired

        now_ms = self._clock.now_ms()
        return [topic for topic in deleted if is_expired(topic, now_ms)]

    def _plan_purge(self, deleted: Topic) -> CleanupPlan:
        from .cleanup.plan import plan_purge

        is_cold = deleted.config.tiered and self._place.cold is not None
        return plan_purge(deleted, self._opened(deleted).unchecked() if is_cold else ColdSnapshot())

    def _swept(self, place: Topic) -> PurgedTopic:
        """The place of a table that was removed, without what came there since."""
        from .cold.answers import PurgedTopic

        return PurgedTopic(place, self._opened(place).purge())

    def _hot_side(self, topic: Topic) -> HotSide | None:
        """What records are erased from beside the table."""
        from .operate.erasure.erase import HotSide

        if self.redis is None:
            return None
        kept = len(self.topics.deleted(topic.name))
        log = self.log(topic, stored_values=True)  # to erase takes no key
        return HotSide(self.redis, self.archiver(topic), log, self.share_groups, kept)

    def _exports_told(self, topic: Topic, *, forgets: bool) -> tuple[ExportTold, ...]:
        from .operate.transfer.known_exports import KnownExports, exports_told
        from .operate.transfer.manifest import Manifest
        from .operate.transfer.places import fitting_options, open_reader

        root = self._place.cold
        if not isinstance(root, PathRoot):
            return ()

        def manifest_at(place: str) -> Manifest:
            reader = open_reader(place, fitting_options(place, root.storage))
            return Manifest.parse(reader.manifest(), reader.where)

        return exports_told(topic, KnownExports(root.storage), manifest_at, forgets=forgets)

    def _export_sources(self, topics: Iterable[Topic]) -> list[ExportSource]:
        """What an export reads."""
        from .archive.copy import HotRows
        from .operate.transfer.exporting import Source as ExportSource

        if self.redis is None:
            return [ExportSource(t, self._cold_table(t), None, nothing_hot, ()) for t in topics]
        groups = self._group_records.read().offsets  # before any topic is looked at
        rows_of = HotRows(self._place.source)
        sources = []
        for topic in topics:
            table = self._table(topic)
            if table is not None:
                self.redis.check_own(topic, table)
            sources.append(ExportSource(topic, table, self.redis, rows_of, groups))
        return sources

    def _checked(self) -> Checked:
        from .cold.catalogue import Catalogue
        from .operate.check.check import Checked

        def log_of(topic: Topic, is_cold: bool) -> TopicLog:
            # Without its table, if the root is away or was not given.
            is_whole = is_cold or self.redis is None
            return self.log(topic) if is_whole else TopicLog(topic, self._tier, None)

        return Checked(
            self._place.cold,
            self.redis,
            None if self.redis is None else self.topics,
            None if self.redis is None else self._group_records,
            log_of,
            self._opened,
            Catalogue if self._place.cold is None else self._catalogue,
        )


class ArchivedTopics:
    """The topics that have tables under a cold root, as these tell them. Thread-safe.

    A topic's settings are those of the last archive run; one of which nothing was archived yet is
    not there.
    """

    def __init__(self, place: LogPlace) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._read_s = float("-inf")
        self._topics: dict[str, Topic] = {}

    def __repr__(self) -> str:
        return f"ArchivedTopics({self._place})"

    def catalogue(self) -> Catalogue:
        """All that lies there, also what cannot be read.

        Raises:
            ColdTierError: the place cannot be listed.
        """
        assert self._place.cold is not None  # see `Lakelog.at`
        found = self._place.cold.catalogue(self._place.keyspace)
        with self._lock:
            self._topics = {topic.name: topic for topic in found.topics}
            self._read_s = time.monotonic()
        return found

    def list(self) -> list[Topic]:
        """All topics, by name.

        Raises:
            ColdTierError: the place cannot be listed.
        """
        return list(self.catalogue().topics)

    def get(self, name: str) -> Topic:
        """The topic of a name.

        Raises:
            UnknownTopicOrPartitionError: there is no table of it.
            AmbiguousTopicError: several keyspaces have one.
            ColdTierError: the place cannot be listed.
        """
        from .cold.catalogue import topic_by_name

        with self._lock:
            is_old = time.monotonic() - self._read_s >= CATALOGUE_LASTS_S
            found = None if is_old else self._topics.get(name)
        assert self._place.cold is not None
        return found or topic_by_name(
            self._place.cold, self._place.keyspace, name, self.catalogue()
        )


def _as_report(run: Callable[[Topic], PurgedTopic]) -> Callable[[Topic], CleanupReport]:
    from .cleanup.report import CleanupReport

    return lambda topic: CleanupReport(topic.name, purged=run(topic))


#: The earlier name of a log without its Redis.
ColdLog = Lakelog

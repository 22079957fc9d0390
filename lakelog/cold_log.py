"""`ColdLog`: what is archived of a log, by itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from msgspec.structs import replace

from .base.clock import Clock, SystemClock
from .cleanup import STEPS
from .cold.change import nothing_hot
from .cold.table import ColdSnapshot, ColdTable
from .engines.engine import Engine
from .errors import DeliveryError, EraseFailedError, InvalidArgumentError
from .groups.coordinator import GroupCoordinator
from .operate.check.finding import TIERS
from .place import LogPlace, PathRoot
from .read.hot_tier import HotTier, NothingHot
from .read.subscription import SeenTopics
from .read.topic_log import TopicLog
from .tracing.switch import tracer
from .values.arguments import optional_duration, optional_event, some_of
from .values.config import DATA_KEYS, TopicConfig
from .values.offsets import PositionLike
from .values.topic import Topic, topic_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from .archive.report import Trouble
    from .cleanup.cleanup import Cleanup, Removal
    from .cleanup.plan import CleanupPlan
    from .cleanup.report import CleanupReport
    from .cold.answers import PurgedTopic
    from .cold.catalogue import Catalogue
    from .explore.explorer.widget import LogExplorer
    from .operate.check.check import Checked
    from .operate.check.finding import CheckReport
    from .operate.erasure.certificate import Erased
    from .operate.erasure.erase import HotSide
    from .operate.metrics.log_look import LogLook
    from .operate.status import Status
    from .operate.transfer.exporting import Progress
    from .operate.transfer.exporting import Source as ExportSource
    from .operate.transfer.known_exports import ExportTold
    from .operate.transfer.manifest import Manifest
    from .read.consumer import Consumer
    from .spark.catalog.registration import Registered

logger = logging.getLogger(__name__)

#: How long what the tables tell of their topics is believed when a topic is looked up.
CATALOGUE_LASTS_S = 10.0

Self = TypeVar("Self", bound="ColdLog")


class Topics(Protocol):
    """Which topics there are."""

    def list(self) -> list[Topic]:
        """All topics, by name."""
        ...

    def get(self, name: str) -> Topic:
        """The topic of a name.

        Raises:
            UnknownTopicOrPartitionError: there is none.
        """
        ...


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
        assert self._place.cold is not None  # see `ColdLog`
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


class ColdLog:
    """The archived part of a log, without its Redis: everything ends where the archive ends.

    Made by `Lakelog.connect(None, cold)`; a `Lakelog` has all of this too, with the records that
    are not archived yet. Thread-safe.

    Args:
        place: with a cold root.
        engine: where files at paths are read and written.
        clock: what retention and "10 minutes ago" are counted from.
    """

    hot: HotTier
    topics: Topics

    def __init__(self, place: LogPlace, engine: Engine, *, clock: Clock | None = None) -> None:
        tracer()  # what the environment says of it and cannot be shows here
        self._place = place
        self._engine = engine
        self._clock: Clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._tables: dict[UUID, ColdTable] = {}
        self._newest: dict[str, UUID] = {}  # of each name, the creation that was opened last
        self._log_look: LogLook | None = None
        self._archived = ArchivedTopics(place)
        self.topics = self._archived
        self.hot = NothingHot(self._opened_table, self._clock)

    @classmethod
    def of(cls, place: LogPlace, engine: Engine, *, clock: Clock | None = None) -> ColdLog:
        """What is archived at a place.

        Raises:
            InvalidArgumentError: the place has no cold root.
        """
        if place.cold is None:
            raise InvalidArgumentError(
                "neither a Redis nor a cold root was named, so there is no log to open: give "
                "redis_url, or cold, or both"
            )
        return ColdLog(place, engine, clock=clock)

    # -- reading -------------------------------------------------------------------------------

    def log(self, topic: str | Topic, *, stored_values: bool = False) -> TopicLog:
        """The archived part of a topic as a log.

        Args:
            stored_values: give encrypted values as they are stored, which takes no key.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
        """
        found = self._topic(topic)
        return TopicLog(
            found,
            self.hot,
            self._cold_table(found),
            clock=self._clock,
            frame_of=self._frame,
            explorer_of=self.explore,
            stored_values=stored_values,
        )

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
        consumer = Consumer(logs, chosen, self._seen_topics(), self._coordinator())
        if topics:
            consumer.subscribe(topics)
        return consumer

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
            topic: which to begin with; another can be picked. None: the first by name.
            partition: which to show; None: all of them, merged by time.
            at: where to begin: an offset, a name, a time, a distance from now.
            where: which records to show; see `TopicLog.search`.
            write: whether a record may be sent again from it, edited or not.
            main_thread: whether the thread of this call alone tells the page what to show, between
                cells and while it waits for the explorer: for a frontend that takes nothing from
                other threads. What is found while a long cell runs is then shown after it.

        Raises:
            MissingExtraError: ipywidgets is not installed.
            UnknownTopicOrPartitionError: no such topic or partition.
            InvalidArgumentError: not a position, or not an expression; or `write` without a Redis.
        """
        from .explore.explorer import launch
        from .explore.explorer.view import Source

        source = Source(
            self.log,
            lambda: [found.name for found in self.topics.list()],
            self._archived_of(),
            self._producer_of() if write else None,
            self._positions_of(),
        )
        return launch(source, topic, partition, at, where, main_thread=main_thread)

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

    def register(
        self, topic: str | Topic, schema: str | None = None, *, spark: SparkSession | None = None
    ) -> Registered:
        """Makes a topic's table known in a schema of a catalog, with its two views.

        ``{topic}_view`` shows the archived records decoded, ``{topic}_latest`` the last value of
        each key. Doing it again changes nothing, or shows columns that the table got meanwhile.

        Args:
            schema: ``catalog.schema``; it must exist. Spark's own catalog is ``spark_catalog``.
                Default: the one that this log is connected to, where archiving does it.
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

    def status(self, topics: str | Iterable[str] | None = None) -> Status:
        """Where every partition stands, as far as the tables tell.

        A topic that cannot be looked at, such as one whose table does not answer for a minute, is
        among the `failures`; the others are told all the same.
        """
        from .operate.status import TopicFailure, status

        if topics is not None:
            asked = self._topics(topics)
            return status(self.hot, asked, self._table, looks=self.log_look.tables)
        found = self._archived.catalogue()
        seen = status(self.hot, found.topics, self._table, looks=self.log_look.tables)
        untold = (TopicFailure(str(e.path), e) for e in found.untold(self._place))
        return replace(seen, failures=(*seen.failures, *untold))

    def metrics(self, topics: str | Iterable[str] | None = None) -> pa.Table:
        """What there is to measure of the log now, and what this process has counted of its work.

        Sizes, offsets and lags of every partition in both tiers, servers, groups; then what the
        producers, consumers and archivers of this process did, in all logs that it has open, and
        the cleanups of all processes. Without a Redis, only what the tables and this process tell.
        `lakelog help metrics` lists the metrics with their units, labels and Kafka's names.

        Args:
            topics: names; None for all. Counts of the process are those of all topics.

        Returns:
            Rows of `METRICS_SCHEMA`: ``metric``, ``kind``, ``unit``, ``labels`` (a map) and
            ``value``.

        Raises:
            UnknownTopicOrPartitionError: no such topic. A topic that is there and cannot be looked
                at raises nothing: it has a row ``lakelog_topic_failed``.
        """
        from .base.metrics.of_process import COUNTS
        from .operate.metrics.table import metrics_table

        return metrics_table(COUNTS.beside(self.log_look.look(self._topics(topics))))

    def group_troubles(self) -> tuple[Trouble, ...]:
        """Why what groups have committed is not recorded, as far as this object knows; none here,
        where there are no groups.
        """
        return ()

    @property
    def log_look(self) -> LogLook:
        """What `metrics` and `status` look at the log with; the first look opens all tables."""
        with self._lock:
            if self._log_look is None:
                self._log_look = self._made_log_look()
            return self._log_look

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
        reads; with its settings, and of a log with a Redis, with what is not archived yet and how
        far groups have come. ``manifest.json`` names each file with its checksum, and is written
        last. Archivers, producers and cleanups may go on. A call that was cut short is finished by
        the next one; an earlier export in the same folder is brought up to date.

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

    def check(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        repair: bool = False,
        tiers: Collection[str] = TIERS,
        progress: Callable[[int], None] | None = None,
    ) -> CheckReport:
        """Whether everything is as it should be; all records are read and compared.

        Of each partition: that every offset is there once and in order, that both tiers hold the
        same, that entries and files are what was written, and that statistics, indexes and
        registers are right about them. Of each topic: that its settings are the same wherever a
        copy is kept, and that no file is missing or left over. Of the whole: tables that no topic
        has, offsets of groups, and whether the store lists, writes, reads, commits and deletes.
        Damage is an answer, not an error, and so is a tier that does not answer. Runs beside
        everything else, in bounded memory, on the engine that the log was connected with.

        Args:
            topics: names; None for all, and for what else lies under the cold root.
            repair: put right what can be derived from what is sound (the time index and sums in
                Redis, settings that were copied by halves, files that no commit names), and check
                again. No record is deleted, and no offset or log start changes.
            tiers: ``hot``, ``cold`` or both.
            progress: called with the number of records read since the last call.

        Raises:
            UnknownTopicOrPartitionError: no topic of that name.
        """
        return self._check(
            None if topics is None else self._topics(topics),
            repair,
            some_of("a tier", tiers, TIERS),
            progress,
        )

    # -- forgetting ----------------------------------------------------------------------------

    def cleanup(
        self, topics: str | Iterable[str] | None = None, *, steps: Sequence[str] = STEPS
    ) -> list[CleanupReport]:
        """Forgets what the topics' policies say, without Redis; a report a topic.

        The settings are those that the tables carry: archiving puts them there. The newest segment
        of a partition never expires here, since only Redis knows whether all of it is archived.
        Redis forgets what lies below the new log starts when the next archive run looks. Deleted
        topics that ``file.delete.delay.ms`` keeps no longer are removed for good.

        Args:
            topics: names; None for all.
            steps: some of ``retain``, ``compact``, ``optimize``, ``vacuum``.

        Raises:
            UnknownTopicOrPartitionError: no table of that name lies there.
            AmbiguousTopicError: several keyspaces have a table of that name.
            CleanupFailedError: see `Lakelog.cleanup`.
        """
        from .cleanup.cleanup import Removal, clean_all

        if topics is not None:
            cleaners, emptied = self._named_cleaners(topics)
            removals = [Removal(topic, self._vacuumed, "vacuum") for topic in emptied]
            return clean_all(cleaners, steps, removals=removals)
        found = self._archived.catalogue()
        return clean_all(
            [self._cleaner(topic) for topic in found.topics],
            steps,
            broken=found.untold(self._place),
            removals=[
                *self._expiries(found.deleted),
                *self._leftovers(found),
                *(Removal(topic, self._vacuumed, "vacuum") for topic in found.untiered),
            ],
        )

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
            CleanupFailedError: something could not be done in the last round.
        """
        from .cleanup.continuous import clean_continuously

        names = None if topics is None else topic_names(topics)
        return clean_continuously(
            lambda: self.cleanup(names, steps=steps),
            self._cleanup_interval_ms,
            stop=optional_event("stop", stop),
            max_duration=optional_duration("max_duration", max_duration),
        )

    def _cleanup_interval_ms(self) -> int:
        """``log.retention.check.interval.ms`` as it is set now, but a second at least."""
        configs = [topic.config for topic in self._topics(None)] or [TopicConfig()]
        return max(1000, min(config.retention_check_interval_ms for config in configs))

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

    def deleted(self) -> list[Topic]:
        """The deleted topics whose tables are still there, in the order of their deletions.

        Raises:
            ColdTierError: the place cannot be listed.
        """
        return list(self._archived.catalogue().deleted)

    def purge(
        self, name: str, topic_id: str | UUID | None = None, *, gone: bool = False
    ) -> PurgedTopic:
        """Removes what is kept of a deleted topic, now and for good, and lists what is left.

        Readers and archivers that still use it end in an error. A call that was cut short is
        finished by the next one. The catalog's own tables are dropped: how long Unity Catalog lets
        UNDROP bring them back is its own affair.

        Args:
            topic_id: which, of several deleted ones of that name; None for the last.
            gone: its table is gone for good, so that what Redis kept is all there is to remove.

        Raises:
            UnknownTopicOrPartitionError: no deleted topic of that name is kept.
            TopicPurgedError: it came back meanwhile; nothing was removed.
            ArchivedElsewhereError: its table is not there; see `gone`. Nothing was removed.
            ColdTierError: some of it could not be removed; doing it again goes on.
        """
        return self._purge(self._deleted_one(name, topic_id), gone=gone)

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
        rest. Files that hold a match are written again without it and deleted at once, also those
        that readers of older versions might still want. What matches below where the log ended at
        the beginning is gone afterwards. Safe beside archivers, readers and cleanups; doing it
        again does what is left. Here, without a Redis, what Redis holds stays.

        Args:
            keys: whole keys, texts as UTF-8.
            where: an expression instead; see `TopicLog.search`.
            dry_run: only count; changes nothing.
            quarantine: give up, for good and as a whole, files that were removed from the table
                and cannot be read, and damaged entries and files that an older version put in
                quarantine. Else they are only told of.

        Returns:
            What went and what could not be reached; `lakelog.operate.erasure.certificate` makes a
            certificate of it.

        Raises:
            UnknownTopicOrPartitionError: no such topic.
            InvalidArgumentError: not one of the two, an empty one, an untiered topic, or a
                condition on encrypted values.
            EraseFailedError: something could not be done; the rest was, and is in its `report`.
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
        except EraseFailedError as error:
            told = self._exports_told(found, forgets=False)
            raise error.changed(report=replace(error.report, exports=told)) from error
        return replace(erased, exports=self._exports_told(found, forgets=not dry_run))

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

    # -- the place -----------------------------------------------------------------------------

    @property
    def place(self) -> LogPlace:
        """Where the tiers lie; its `cold` is None where no cold root was given."""
        return self._place

    def close(self) -> None:
        """Nothing is held open."""

    def __enter__(self: Self) -> Self:
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
        return f"ColdLog({self._place})"

    # -- how -----------------------------------------------------------------------------------

    def _frame(self, *given: Any, **options: Any) -> DataFrame:
        from .spark.dataframe import dataframe

        return dataframe(self._place, *given, **options)

    def _hot_side(self, topic: Topic) -> HotSide | None:
        """What records are erased from beside the table."""
        return None

    def _made_log_look(self) -> LogLook:
        """For `metrics`."""
        from .operate.metrics.log_look import LogLook

        return LogLook(None, self._table, None, self._clock.now_ms)

    def _check(
        self,
        topics: Sequence[Topic] | None,
        is_repair: bool,
        tiers: Collection[str],
        progress: Callable[[int], None] | None,
    ) -> CheckReport:
        from .operate.check.check import check, repairable
        from .operate.check.repair import repair

        checked = self._checked()
        report = check(checked, topics, tiers, progress)
        wrong = list(repairable(report)) if is_repair else []
        if not wrong:
            return report
        done = repair(checked, wrong, self.topics.list() if topics is None else topics)
        return replace(check(checked, topics, tiers, progress), repairs=tuple(done))

    def _checked(self) -> Checked:
        from .operate.check.check import Checked

        return Checked(
            self._place.cold,
            None,
            None,
            None,
            lambda topic, _: self.log(topic),
            self._opened,
            self._archived.catalogue,
        )

    def _seen_topics(self) -> SeenTopics:
        """For a subscription."""
        return SeenTopics(self.topics.list)

    def _coordinator(self) -> GroupCoordinator | None:
        """For consumers in groups."""
        return None

    def _positions_of(self) -> Callable[[Topic], Mapping[str, Mapping[int, int]]] | None:
        """How far groups have come in a topic, which the explorer marks; None: nobody knows."""
        return None

    def _archived_of(self) -> Callable[[str], TopicLog] | None:
        """What the explorer reads while Redis does not answer."""
        return None

    def _producer_of(self) -> Callable[[], Any]:
        """What an explorer that may write makes its producers with."""
        raise InvalidArgumentError(
            "the archive alone takes no records: write=True needs a Lakelog that is connected to "
            "Redis"
        )

    def _deleted_one(self, name: str, topic_id: str | UUID | None) -> Topic:
        from .operate.restore import chosen

        found = [topic for topic in self.deleted() if topic.name == name]
        return chosen(name, None if topic_id is None else str(topic_id), found)

    def _purge(self, deleted: Topic, *, gone: bool = False) -> PurgedTopic:
        from .operate.restore import purge

        return purge(deleted, None, self._opened(deleted), self._place.cold)

    def _expiries(self, deleted: Iterable[Topic]) -> Iterator[Removal]:
        """The deleted topics that are kept no longer."""
        from .cleanup.cleanup import Removal

        return (Removal(topic, _reported(self._purge)) for topic in self._expired(deleted))

    def _leftovers(self, found: Catalogue) -> Iterator[Removal]:
        """What is left of removed tables."""
        from .cleanup.cleanup import Removal

        return (Removal(place, _reported(self._swept)) for place in found.purged)

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

    def _switched_off(self, names: Collection[str]) -> list[Topic]:
        """Those that are archived no more, and have a table."""
        return [topic for topic in self._archived.catalogue().untiered if topic.name in names]

    def _vacuumed(self, untiered: Topic) -> CleanupReport | None:
        from .cleanup.cleanup import vacuumed

        return vacuumed(untiered, self._opened_once(untiered))

    def _export_sources(self, topics: Iterable[Topic]) -> list[ExportSource]:
        """What an export reads."""
        from .operate.transfer.exporting import Source as ExportSource

        return [
            ExportSource(topic, self._cold_table(topic), None, nothing_hot, ()) for topic in topics
        ]

    def _opened_table(self, name: str, topic_id: UUID | None) -> ColdTable:
        """A table that a log was opened with: to look at where it ends lists no place again."""
        with self._lock:
            newest = self._newest.get(name) if topic_id is None else topic_id
            opened = None if newest is None else self._tables.get(newest)
        return opened or self._cold_table(self.topics.get(name))

    def _topic(self, topic: str | Topic) -> Topic:
        return topic if isinstance(topic, Topic) else self.topics.get(topic)

    def _topics(self, topics: str | Iterable[str] | None) -> list[Topic]:
        if topics is None:
            return self.topics.list()
        return [self.topics.get(name) for name in topic_names(topics)]

    def _tiered(self, topics: str | Iterable[str] | None) -> list[Topic]:
        found = self._topics(topics)
        return found if topics is not None else [t for t in found if t.config.tiered]

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

    def _cleaner(self, topic: Topic) -> Cleanup:
        from .cleanup.cleanup import Cleanup

        return Cleanup(topic, self._cold_table(topic), self._clock)

    def _table(self, topic: Topic) -> ColdTable | None:
        """The topic's cold tier; None for an untiered one.

        Raises:
            InvalidArgumentError: it is tiered, but no cold root was given.
        """
        return self._opened_once(topic) if topic.config.tiered else None

    def _opened_once(self, topic: Topic) -> ColdTable:
        with self._lock:
            if topic.topic_id not in self._tables:
                self._tables[topic.topic_id] = self._opened(topic)
            self._newest[topic.name] = topic.topic_id
            return self._tables[topic.topic_id]

    def _naming(self, topic: Topic) -> AbstractContextManager[None]:
        """See `HotLog.naming`: nobody is kept away without a Redis."""
        return nullcontext()

    def _opened(self, topic: Topic) -> ColdTable:
        return self._place.table(topic, engine=self._engine)

    def _cold_table(self, topic: Topic) -> ColdTable:
        table = self._table(topic)
        if table is None:
            raise InvalidArgumentError(
                f"topic {topic.name!r} has no cold tier (remote.storage.enable=false): there is "
                "nothing to archive it to, and its hot tier forgets by itself",
                topic=topic.name,
            )
        return table


def _reported(run: Callable[[Topic], PurgedTopic]) -> Callable[[Topic], CleanupReport]:
    from .cleanup.report import CleanupReport

    return lambda topic: CleanupReport(topic.name, purged=run(topic))

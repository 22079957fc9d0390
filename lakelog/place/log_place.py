"""How any process opens a log: what travels to Spark's executors instead of connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ..base.clock import Clock
from ..base.once_a_process import OnceAProcess
from ..base.secret_reference import check_executors_can_resolve
from ..cold.as_archived import AsArchived
from ..cold.by_name.names import SCHEMA
from ..cold.change import nothing_hot
from ..cold.store.object_store import check_lasts
from ..cold.store.storage import Storage
from ..cold.table import ColdTable, unguarded
from ..engines.engine import Engine, InlineEngine
from ..errors import (
    ArchivedElsewhereError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
)
from ..hot.hot_log import HotLog, HotSource
from ..hot.keys import DEFAULT_KEYSPACE
from ..read.tiers import Tiers
from ..spark.open_session import open_session
from ..values.tenant_name import check_tenant_name, tenant_keyspace
from ..values.topic import Topic
from .by_path import PathRoot
from .task_tiers import TaskTiers, WholeTiers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .by_name import NamedRoot


class LogPlace(Struct, frozen=True):
    """Where the tiers of a log are. Picklable; shows and holds no password but one in the URL.

    Runs on: driver|executor.
    """

    hot: HotSource | None  # None: cold alone
    cold: ColdRoot | None = None  # None: untiered topics alone
    keyspace: str | None = None  # whose tables are meant where no Redis is asked; None: all
    tenant: str | None = None  # whose place it is; None: that of no tenant

    @classmethod
    def of(
        cls,
        redis_url: str | None,
        cold: str | Path | None = None,
        location: str | Path | None = None,
        *,
        keyspace: str | None = None,
        password_ref: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        spark: Callable[[], SparkSession] = open_session,
        tables_at: str | None = None,
    ) -> LogPlace:
        """What the arguments of `Lakelog.connect` say.

        Args:
            keyspace: None for `DEFAULT_KEYSPACE`; without a Redis, for the only one there.
            spark, tables_at: see `cold_root`.

        Raises:
            InvalidArgumentError, ColdTierError: see `cold_root`.
        """
        root = cold_root(cold, location, storage_options, spark=spark, tables_at=tables_at)
        if redis_url is None:
            return cls(None, root, keyspace)
        return cls(HotSource(redis_url, keyspace or DEFAULT_KEYSPACE, password_ref), root)

    def of_tenant(self, name: str) -> LogPlace:
        """Where the tiers of one of its tenants are.

        Raises:
            InvalidArgumentError: no tenant can have that name, or this is a tenant's already.
        """
        check_tenant_name(name)
        if self.tenant is not None:
            raise InvalidArgumentError(
                f"tenant {self.tenant!r} has no tenants of its own, such as {name!r}: connect to "
                "the log without a tenant"
            )
        hot, keyspace = self.hot, self.keyspace
        if hot is not None:
            hot = replace(hot, keyspace=tenant_keyspace(hot.keyspace, name))
        elif keyspace is not None:
            keyspace = tenant_keyspace(keyspace, name)
        cold = None if self.cold is None else self.cold.of_tenant(name)
        return LogPlace(hot, cold, keyspace, name)

    @property
    def archived(self) -> LogPlace:
        """The cold tier alone, of the same keyspace."""
        if self.hot is None:
            return self
        return LogPlace(None, self.cold, self.hot.keyspace, self.tenant)

    # -- the driver ------------------------------------------------------------------------------

    @property
    def source(self) -> HotSource:
        """Where the hot tier is.

        Raises:
            InvalidArgumentError: the place has none.
        """
        if self.hot is None:
            raise InvalidArgumentError(f"no Redis was named beside {self}; pass its URL")
        return self.hot

    @property
    def object_stores(self) -> tuple[str, ...]:
        return () if self.cold is None else self.cold.object_stores

    def table(
        self,
        topic: Topic,
        *,
        engine: Engine = InlineEngine(),  # noqa: B008, it has no state
        newest_config: Callable[[], int] | None = None,
    ) -> ColdTable:
        """The cold tier of a tiered topic, opened anew.

        Args:
            engine, newest_config: see `PathRoot.table`.

        Raises:
            InvalidArgumentError: the place has no cold root.
        """
        from ..archive.copy import HotRows

        rows_of = nothing_hot if self.hot is None else HotRows(self.hot)
        return self._root(topic).table(
            topic,
            rows_of,
            engine=engine,
            newest_config=newest_config,
            naming=nullcontext if self.hot is None else lambda: self.open_hot().naming(topic),
            making=unguarded if self.hot is None else partial(self._making, topic),
        )

    def check_is_there(self) -> None:
        """Refuses an empty folder if tables of topics lay there: its disk may not be mounted, and
        what is made there now would be hidden once it is.

        Raises:
            ArchivedElsewhereError: so it is, as Redis remembers.
            HotTierUnavailableError: Redis does not answer.
        """
        if self.hot is None or self.cold is None or not self.cold.is_empty():
            return
        hot = self.open_hot()
        for topic in hot.topics().list():
            if not topic.config.tiered:
                continue
            table = self.table(topic)
            try:
                hot.check_own(topic, table)
            except ArchivedElsewhereError as error:
                if error.where == table.where:
                    raise
            except HotTierUnavailableError:
                raise
            except LakelogError:
                continue  # damaged, deleted meanwhile, or not ours to ask about

    def check_may_make(self, topic: Topic) -> None:
        """As `check_is_there`, for who would make a topic's first table."""
        try:
            self.check_is_there()
        except ArchivedElsewhereError as error:
            raise error.changed(
                message=f"topic {topic.name!r} has no table yet, and none is made in {self.cold} "
                f"now: {error.message}",
                topic=topic.name,
            ) from error

    def _making(self, topic: Topic, table: ColdTable) -> AbstractContextManager[None]:
        return self.open_hot().archived_into().making(topic, table)

    @contextmanager
    def naming_status(self) -> Iterator[None]:
        """Held while a table of the log's own is made, such as that of job runs: none is while the
        folder is away, and in a catalog nobody else does at that time; nobody is kept away while no
        Redis answers.

        Raises:
            ArchivedElsewhereError: see `check_is_there`.
        """
        with ExitStack() as held:
            if self.hot is not None and self.cold is not None:
                with suppress(HotTierUnavailableError):
                    self.check_is_there()
                    if self.cold.schema is not None:
                        held.enter_context(self.open_hot().naming_status())
            yield

    def tiers(self, topic: Topic, *, stored_values: bool = False) -> Tiers:
        """Both tiers of a topic, for a driver that reads; tables at paths are opened once.

        Args:
            stored_values: give encrypted values as they are stored.

        Raises:
            InvalidArgumentError: it is tiered, but the place has no cold root.
        """

        def opened() -> ColdTable:
            shared = self._root(topic).opens_in_tasks
            return self._shared_table(topic) if shared else self.table(topic)

        table = opened() if topic.config.tiered else None
        return Tiers(topic, self.open_hot(), table, open_table=opened, stored_values=stored_values)

    def clock(self) -> Clock:
        """Redis's time, so that "10 minutes ago" means the same to everyone."""
        return _RedisClock(self.source)

    def options(self) -> dict[str, str]:
        """The data source options that say the same; `options.log_place` reads them.

        Raises:
            InvalidArgumentError: the URL has a password, or a storage option is a secret in clear,
                which plans and logs would then show; or executors cannot resolve a reference.
        """
        source = self.source
        check_no_password(source.url)
        found = {"redis": source.url, "keyspace": source.keyspace}
        if source.password_ref is not None:
            check_executors_can_resolve(source.password_ref, "password_ref")
            found["passwordRef"] = source.password_ref
        return found if self.cold is None else {**found, **self.cold.options()}

    def for_tasks(self, spark: SparkSession, tiers: Tiers) -> LogPlace:
        """The place as tasks and what plans them are told of it; see `PathRoot.for_tasks`."""
        if self.cold is None:
            return self
        return replace(self, cold=self.cold.for_tasks(spark, tiers.topic, tiers.table))

    def to_hand_on(self, topics: Iterable[Topic]) -> Any:
        """What opens the topics' cold tiers where nobody is logged in; see `PathRoot`."""
        return None if self.cold is None else self.cold.to_hand_on(topics)

    # -- tasks -----------------------------------------------------------------------------------

    def open_hot(self) -> HotLog:
        """The hot tier, opened once a process."""
        return self.source.open()

    def take(self, handed_on: Any) -> None:
        """Open the cold tier in this process by what the driver handed on."""
        if self.cold is not None and handed_on is not None:
            self.cold.take(handed_on)

    def opens_in_tasks(self, topic: Topic) -> bool:
        """Whether a task can change the topic's cold tier, or needs not, as it has none."""
        return not topic.config.tiered or (self.cold is not None and self.cold.opens_in_tasks)

    def task_table(self, topic: Topic) -> ColdTable | None:
        """The topic's cold tier, opened once a process; None for an untiered topic.

        Raises:
            InvalidArgumentError: it is tiered, but the place has no cold root.
        """
        return self._shared_table(topic) if topic.config.tiered else None

    def task_tiers(self, topic: Topic, *, stored_values: bool = False) -> Tiers:
        """Both tiers of a topic, with nothing remembered of an earlier reader.

        Of a topic that is archived by name, the hot one alone if tasks cannot read that table.

        Args:
            stored_values: give encrypted values as they are stored.

        Raises:
            InvalidArgumentError: it is tiered, but the place has no cold root.
        """

        def opened() -> ColdTable:
            return self._shared_table(topic)

        table, by_name = self.task_table(topic), not self.opens_in_tasks(topic)
        return TaskTiers(
            topic,
            self.open_hot(),
            table,
            open_table=opened,
            by_name=by_name,
            stored_values=stored_values,
        )

    def task_tiers_as_archived(
        self,
        topic: Topic,
        partition: int,
        *,
        since: int,
        start: int,
        end: int,
        stored_values: bool = False,
    ) -> tuple[Tiers, AsArchived | None]:
        """As `task_tiers`, cold as it was archived; None for an untiered topic."""
        table = self.task_table(topic)
        if table is None:
            return self.task_tiers(topic, stored_values=stored_values), None
        where = topic.partition(partition)
        archived = AsArchived(table, where, since=since, start=start, end=end)
        by_name = not self.opens_in_tasks(topic)
        tiers = WholeTiers(
            topic, self.open_hot(), table, archived, by_name=by_name, stored_values=stored_values
        )
        return tiers, archived

    def _shared_table(self, topic: Topic) -> ColdTable:
        """The topic's cold tier, opened once a process.

        Raises:
            InvalidArgumentError: the place has no cold root.
        """
        from ..archive.copy import HotRows

        root = self._root(topic)
        return _TABLES.get(
            (self, topic.topic_id), lambda: root.task_table(topic, HotRows(self.source))
        )

    def __str__(self) -> str:
        return "no cold tier" if self.cold is None else str(self.cold)

    def _root(self, topic: Topic) -> ColdRoot:
        if self.cold is None:
            raise InvalidArgumentError(
                f"topic {topic.name!r} is tiered, but no cold root was given; pass cold=… (--cold "
                "on the command line, the option 'cold' in Spark): the folder, URL or "
                "catalog.schema that it is archived to",
                topic=topic.name,
            )
        return self.cold


_TABLES: OnceAProcess[tuple[LogPlace, UUID], ColdTable] = OnceAProcess()


def check_no_password(url: str) -> None:
    """Refuse a password where everybody would read it: Spark writes options into plans and logs.

    Raises:
        InvalidArgumentError: the URL has one.
    """
    # As redis-py reads it, which also takes a password that is not percent-encoded.
    credentials = url.partition("://")[2].rpartition("@")[0]
    try:
        parameters = parse_qs(urlsplit(url).query)
    except ValueError:
        parameters = {}
    if ":" in credentials or not parameters.keys().isdisjoint(("password", "ssl_password")):
        raise InvalidArgumentError(
            "the Redis URL has a password, and Spark shows a reader's options in plans, event logs "
            "and checkpoints. Leave it out of the URL and say where it is: passwordRef=env:NAME "
            "(password_ref= in Python), with NAME in the environment of the driver and of every "
            "executor"
        )


class _RedisClock(Struct, frozen=True):
    source: HotSource

    def now_ms(self) -> int:
        return self.source.open().now_ms()


# -- the cold tier ---------------------------------------------------------------------------

#: One of the two kinds, which have the same methods: `PathRoot` says what each is for. A value: it
#: can be pickled, compared and hashed. As a string, how people call it.
ColdRoot: TypeAlias = "PathRoot | NamedRoot"


def cold_root(
    cold: str | Path | None,
    location: str | Path | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    spark: Callable[[], SparkSession] = open_session,
    tables_at: str | None = None,
) -> ColdRoot | None:
    """Where the tables of topics lie; None where no place is named.

    ================  ========  ========================================================
    cold              location  tables
    ================  ========  ========================================================
    a path or URL               at paths: `PathRoot`
    `catalog.schema`            the catalog's own (managed), by name: `NamedRoot`
    `catalog.schema`  a path    at paths, each known to the catalog by its name: `PathRoot`
    ================  ========  ========================================================

    Two names with a dot and without a slash are a schema; a folder of such a name is ``./a.b``. On
    Databricks a folder begins with ``/``: any other lies in the working directory, on the disk of a
    machine that goes with its cluster, and is rarely what was meant.

    Args:
        spark: gives the session that tables by name are opened with.
        tables_at: finds tables by name where there is no session; see `TableLocation`.

    Raises:
        InvalidArgumentError: a location, or storage options, that go with nothing; on Databricks,
            a relative path.
        ColdTierError: no place that a Delta commit can be made in.
    """
    schema = cold if isinstance(cold, str) and SCHEMA.fullmatch(cold) else None
    if location is not None and schema is None:
        raise InvalidArgumentError(
            f"location={str(location)!r} goes with cold='catalog.schema', not with {cold!r}: it "
            "says where the schema's tables lie"
        )
    path = cold if schema is None else location
    if path is not None:
        text = str(path) if isinstance(path, PathLike) else path
        root = PathRoot(Storage(text, storage_options), schema)
        check_lasts(text, "cold" if schema is None else "location")
        _check_no_directory(root.storage)
        return root
    if storage_options:
        raise InvalidArgumentError("storage options open an object store, and none is named")
    if schema is None:
        return None
    from .by_name import NamedRoot

    return NamedRoot(schema, spark, tables_at)


def _check_no_directory(storage: Storage) -> None:
    """The directory of `Lakelog.embedded` is no cold root: its tables lie in a folder of it."""
    folder = Path(storage.root)
    is_one = storage.is_local and (folder / "redis" / "redis.conf").exists()
    if is_one and (folder / "cold").is_dir():
        raise InvalidArgumentError(
            f"{folder} is the directory of a log with its own Redis, whose tables lie in "
            f"{folder}/cold: open it by --dir {folder} (Lakelog.embedded), or give {folder}/cold "
            "for what is archived",
            value=storage.root,
        )

"""What Spark's driver and executors can reach: lakelog itself, Redis, the cold root."""

from __future__ import annotations

import pickle
import platform
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

import lakelog

from ..cold.store.storage import Storage
from ..engines.spark import cores
from ..errors import LakelogError
from ..hot.hot_log import HotSource
from ..hot.redis_url import connection_options, of_each_host
from ..place import PathRoot, cold_root
from ..place.by_name import NamedRoot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER, EXECUTOR = "driver", "executor"

#: More tasks than can run at once, since a scheduler need not deal them out evenly.
TASKS_A_CORE = 2


class Way(Struct, frozen=True):
    """Whether a process reaches one target."""

    target: str  # never with a password
    passed: tuple[str, ...]  # what was done there, in order
    flaw: str | None = None  # why no more was; None: it reaches it


class Place(Struct, frozen=True):
    """What the Python processes of one host found; processes that found another thing are another
    place.
    """

    role: str  # driver or executor
    host: str
    processes: int  # how many tasks saw it so
    python: str
    lakelog: str | None  # its version; None: it is not installed there
    lacks: str | None  # an import that failed; nothing else was tried then
    ways: tuple[Way, ...]


class Check(Struct, frozen=True):
    """What each process tries. Picklable; holds no password."""

    source: HotSource | None
    storage: Storage | None
    marker: str | None = None  # a file below the cold root that the driver wrote

    def __call__(self) -> tuple[Way, ...]:
        """One way for each target.

        Runs on: driver|executor.
        """
        ways = [] if self.source is None else list(_ways_to_redis(self.source))
        if self.storage is not None:
            ways.append(_way_to_cold(self.storage, self.marker))
        return tuple(ways)


def reach(
    spark: SparkSession,
    redis_url: str | None = None,
    cold: str | None = None,
    *,
    location: str | None = None,
    password_ref: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[Place]:
    """What the driver and as many executors as a job gets hold of can reach; the driver first.

    Nothing is raised for what cannot be reached: the `ways` say so. Over Spark Connect the driver
    is this client.

    Args:
        redis_url, cold, location, password_ref, storage_options: as `Lakelog.connect` takes them.
            Without a URL or a cold place, that tier is not tried. Of a ``catalog.schema`` only the
            driver lists the tables: executors never open those.

    Raises:
        InvalidArgumentError, ColdTierError: the URL, or the cold root, is none.

    Runs on: driver; one Spark job.
    """
    source = None
    if redis_url is not None:
        for one in of_each_host(redis_url):
            connection_options(one)  # refuses what is no URL
        source = HotSource(redis_url, password_ref=password_ref)
    root = cold_root(cold, location, storage_options, spark=lambda: spark)
    storage = root.storage if isinstance(root, PathRoot) else None
    check = Check(source, storage)
    ways = check()
    if root is not None and root.schema is not None:
        ways = (*ways, _way_to_schema(NamedRoot(root.schema, lambda: spark)))
    here = Place(
        DRIVER, socket.gethostname(), 1, platform.python_version(), lakelog.__version__, None, ways
    )
    with _marker(storage, here) as marker:
        return [here, *_on_executors(spark, replace(check, marker=marker))]


@contextmanager
def _marker(storage: Storage | None, here: Place) -> Iterator[str | None]:
    """A file below the cold root while executors look for it; None where none can be written."""
    if storage is None or any(way.flaw for way in here.ways if way.target == storage.root):
        yield None
        return
    marker = f"{storage.root.rstrip('/')}/.lakelog-probe-{uuid4().hex}"
    with storage.filesystem().open_output_stream(storage.arrow_path(marker)) as out:
        out.write(b"lakelog")
    try:
        yield marker
    finally:
        storage.delete_file(marker)


def _way_to_schema(root: NamedRoot) -> Way:
    try:
        root.catalogue()
    except LakelogError as error:
        return Way(root.schema, (), error.message)
    return Way(root.schema, ("list",))


def _ways_to_redis(source: HotSource) -> Iterator[Way]:
    """To each server behind the URL, or to the URL if there is no way to know of any."""
    try:
        with closing(source.connect()) as hot:
            for server in hot.connections.all():
                try:
                    server.call(("PING",))
                    yield Way(server.name, ("PING",))
                except LakelogError as error:
                    yield Way(server.name, (), error.message)
    except LakelogError as error:
        yield Way(str(source), (), error.message)


def _way_to_cold(storage: Storage, marker: str | None) -> Way:
    passed: tuple[str, ...] = ()
    try:
        storage.check_writable()
        passed = ("write",)
        if marker is not None and not storage.is_file(marker):
            return Way(
                storage.root,
                passed,
                "what the driver wrote there is not to be seen from this host: the path is another "
                "folder on each machine; choose one that all share, or an object store's URL",
            )
    except (LakelogError, OSError) as error:
        return Way(storage.root, passed, str(error))
    return Way(storage.root, (*passed, "read"))


# -- executors -----------------------------------------------------------------------------------


def _on_executors(spark: SparkSession, check: Check) -> list[Place]:
    tasks = TASKS_A_CORE * cores(spark)
    numbers = spark.range(0, tasks, 1, tasks)
    answers = numbers.mapInArrow(_probe(pickle.dumps(check)), "host string, answer binary")
    counted: dict[Place, int] = {}
    for row in answers.collect():
        place = Place(EXECUTOR, row["host"], 1, *pickle.loads(bytes(row["answer"])))
        counted[place] = counted.get(place, 0) + 1
    places = [replace(place, processes=count) for place, count in counted.items()]
    return sorted(places, key=lambda place: (place.host, -place.processes))


def _probe(check: bytes) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What each task runs.

    A function within a function travels as code, not as the name of a module: it must run where
    lakelog is not installed, to say so.
    """

    def probe(batches: Iterable[Any]) -> Iterator[Any]:
        import pickle
        import platform
        import socket

        import pyarrow as pa

        for _ in batches:
            installed, lacks, ways = None, None, ()
            try:
                import lakelog

                installed = lakelog.__version__
                ways = pickle.loads(check)()
            except ImportError as missing:
                lacks = str(missing)
            answer = pickle.dumps((platform.python_version(), installed, lacks, ways))
            yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()], "answer": [answer]})

    return probe

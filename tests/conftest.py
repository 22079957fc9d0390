"""What tests share: real servers, one Spark, and how hard Hypothesis tries."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import ssl
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import redis
from hypothesis import HealthCheck, settings

from lakelog import Lakelog
from lakelog.cold.store.storage import Storage
from lakelog.hot.embedded.redis_program import RedisProgram, redis_programs
from lakelog.hot.hot_log import HotLog
from tests.support.object_store import FaultyFront, S3Server, s3_options
from tests.support.servers import RedisClusterServers, RedisServer, TlsFront
from tests.support.unity_catalog import SPARKS_OWN, UnityCatalogServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# support/ is no tests, and is also imported by the programs that tests start, as `tests.support`
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

#: Tests start hundreds of processes, and each would compile lakelog anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

#: What runs in the background (`nohup`, a runner of CI) ignores Ctrl-C, and so would all processes
#: that it starts: those whose interruption is tested would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_COMMON: dict[str, Any] = {
    "deadline": None,  # a shared machine: time says nothing about the code
    "print_blob": True,  # what to paste to see a failure again
    # Fixtures here are servers, which examples share on purpose: each example flushes or takes
    # fresh names.
    "suppress_health_check": [
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.differing_executors,  # a contract's property is a test of each that keeps it
    ],
}
settings.register_profile("default", max_examples=50, **_COMMON)
settings.register_profile("nightly", max_examples=2_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


#: Tables here have a few rows, and each query runs a few times: to compile it, or to plan it anew
#: by what it read, takes longer than to run it. The lanes of `compat` run as everybody does.
_SPARK_CONF: dict[str, str] = (
    {}
    if "LAKELOG_TEST_CODEGEN" in os.environ
    else {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
)

#: The same of Java's own compilers: the first one alone, with room to keep what it made (48 MB if
#: nobody says more, which a Spark fills again and again). On two cores one thread collects garbage.
#: All Sparks have it, those of processes that tests start, too.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    " ".join(
        [
            "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
            *(f"-D{name}={value}" for name, value in _SPARK_CONF.items()),
        ]
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--databricks-cli",
        type=Path,
        metavar="PATH",
        help="a Databricks CLI, with which the slow tests deploy the bundle to a stand-in",
    )
    parser.addoption(
        "--kafka",
        metavar="PATH",
        type=Path,
        help="a folder with `up`, `down`, `tool` and `spark-jars` of a Kafka broker: slow tests "
        "of the gateway's clients run its tools, and have it judge what they see",
    )
    parser.addoption(
        "--unity",
        metavar="PATH",
        type=Path,
        help="a folder with `up` and `down` that start a Unity Catalog server: tests of tables by "
        "name run on it too (with -m slow, or -m unity for them alone)",
    )


SPARK_TESTS = Path(__file__).with_name("spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``pytest -n``: two processes have a Spark each, and about as much to do. One has what
    is in `tests/spark` but for tables by name. The rest of the tests is shared file by file, with
    them too when they are done.
    """
    from xdist.scheduler import LoadScopeScheduling

    class TwoSparks(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = config.rootpath / nodeid.split("::")[0]
            if not _takes_spark(file):
                return str(file)
            is_by_path = file.parent == SPARK_TESTS and not file.name.startswith("test_named")
            return "tables by path" if is_by_path else "tables by name, and all that use Spark"

    return TwoSparks(config, log)


@cache
def _takes_spark(file: Path) -> bool:
    """Whether tests of a file have the fixture `spark`, themselves or by another one."""
    if file.parent == SPARK_TESTS:
        return True
    return re.search(r"def \w+\([^)]*\bspark\b", file.read_text("utf-8")) is not None


@pytest.fixture(scope="session")
def _redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    try:
        yield server.start()
    finally:
        server.kill(at_once=True)


@pytest.fixture
def redis_url(_redis_server: RedisServer) -> str:
    """The URL of the run's one server, emptied. To restart or configure one: `make_redis`."""
    with _redis_server.client() as client:
        client.flushall()
    return _redis_server.url


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """A plain client of `redis_url`."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    """The test's own, in both tiers."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as opened:
        yield opened


@pytest.fixture
def log(lake: Lakelog) -> Lakelog:
    """The same, as a test calls it that opens no log of a topic."""
    return lake


@pytest.fixture
def make_redis(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Makes servers of the test's own: ``make_redis(maxmemory="8mb", requirepass="secret")``.

    ``program=`` picks one of `redis_programs`; see the `redis_program` fixture.
    """
    servers: list[RedisServer] = []

    def make(*, program: RedisProgram | None = None, **conf: Any) -> RedisServer:
        server = RedisServer(tmp_path / f"redis-{len(servers)}", conf, program)
        servers.append(server)
        return server.start()

    try:
        yield make
    finally:
        for server in servers:
            server.kill(at_once=True)


@pytest.fixture(params=redis_programs(), ids=lambda program: program.family)
def redis_program(request: pytest.FixtureRequest) -> RedisProgram:
    """Each server of this machine in turn (redis-server, valkey), for ``make_redis(program=…)``."""
    program: RedisProgram = request.param
    return program


@pytest.fixture(scope="session")
def _redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisClusterServers]:
    cluster = RedisClusterServers(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def redis_cluster(_redis_cluster: RedisClusterServers) -> RedisClusterServers:
    """A real three-node cluster, emptied; its ``url`` is ``redis://…?cluster=true``."""
    _redis_cluster.flush()
    return _redis_cluster


@pytest.fixture
def redis_tls_url(make_redis: Callable[..., RedisServer], tmp_path: Path) -> Iterator[str]:
    """A server behind TLS, with a certificate of an authority that only this URL names."""
    import trustme  # builds certificates with compiled code: only where they are needed

    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    front = TlsFront(make_redis(), context).start()
    try:
        yield f"rediss://127.0.0.1:{front.port}?ssl_ca_certs={tmp_path / 'authority.pem'}"
    finally:
        front.stop()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """The run's one S3-speaking server, with a bucket ``lakelog``."""
    server = S3Server().start()
    try:
        server.make_bucket("lakelog")
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3_front(s3_server: S3Server) -> Iterator[FaultyFront]:
    """A front before it that can be made to fail."""
    front = FaultyFront(s3_server.port).start()
    try:
        yield front
    finally:
        front.stop()


@pytest.fixture
def s3_storage(s3_server: S3Server) -> Storage:
    """A cold root of the test's own on it."""
    return Storage(f"s3://lakelog/{uuid4().hex}", s3_options(s3_server.url))


@pytest.fixture(scope="session")
def unity_server(request: pytest.FixtureRequest) -> Iterator[UnityCatalogServer | None]:
    """The run's Unity Catalog; None without ``--unity``."""
    folder: Path | None = request.config.getoption("--unity")
    if folder is None:
        yield None
        return
    with contextlib.ExitStack() as servers:
        s3 = S3Server()
        servers.callback(s3.stop)
        s3.start().make_bucket(UnityCatalogServer.BUCKET)
        # Before a Spark starts: its workers have the environment that its Java had.
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", s3.url)
            server = UnityCatalogServer(folder.absolute(), s3).start()
            servers.callback(server.stop)
            yield server


@pytest.fixture(scope="session")
def spark(unity_server: UnityCatalogServer | None) -> Iterator[SparkSession]:
    """The run's one Spark: two tasks at once, with Delta, S3 and what Unity Catalog there is."""
    from lakelog.spark import session

    # What ``env:LAKELOG_TEST_SECRET`` names: workers have the environment Java was started with.
    os.environ["LAKELOG_TEST_SECRET"] = "a secret word"
    conf = _SPARK_CONF | ({} if unity_server is None else unity_server.spark_conf())
    started = session("lakelog-tests", cores=2, object_stores=["s3"], conf=conf)
    yield started
    started.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With ``--unity``, tests of a schema run on each catalog."""
    if "schema" in metafunc.fixturenames and metafunc.config.getoption("--unity") is not None:
        unity, on_s3 = (
            pytest.param(name, marks=(pytest.mark.slow, getattr(pytest.mark, name)))
            for name in (UnityCatalogServer.CATALOG, UnityCatalogServer.CATALOG_ON_S3)
        )
        metafunc.parametrize("catalog", [SPARKS_OWN, unity, on_s3], indirect=True)


@pytest.fixture
def catalog(request: pytest.FixtureRequest) -> str:
    """The catalog of `schema`: Spark's own, or with ``--unity`` those of the server too."""
    return getattr(request, "param", SPARKS_OWN)


@pytest.fixture
def schema(spark: SparkSession, catalog: str, tmp_path: Path) -> Iterator[str]:
    """``catalog.schema`` of a new schema; in Spark's own catalog its tables lie with the test."""
    name = f"s{uuid4().hex[:8]}"
    place = f"LOCATION '{tmp_path}/{name}'" if catalog == SPARKS_OWN else ""
    spark.sql(f"CREATE SCHEMA {catalog}.{name} {place}")
    yield f"{catalog}.{name}"
    spark.sql(f"DROP SCHEMA {catalog}.{name} CASCADE")


@pytest.fixture(autouse=True)
def _main_module_stays() -> Iterator[None]:
    """A shell of IPython puts its own there, beside which Spark Connect cannot be imported."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def pass_ms() -> Callable[[HotLog, int], None]:
    """Waits on a server's clock, which no test can set: a lost tail's gap is as wide as it ran."""

    def wait(hot: HotLog, milliseconds: int) -> None:
        until_ms = hot.now_ms() + milliseconds
        while hot.now_ms() < until_ms:
            pass

    return wait

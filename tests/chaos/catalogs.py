"""The catalog of a round whose tables are by name, and the Spark that its processes share.

| scenario     | catalog                               | who has a Spark of its own       |
|--------------|---------------------------------------|----------------------------------|
| ``named``    | Spark's own, in a Spark Connect server| nobody: the others are clients   |
| ``unity``    | a Unity Catalog server, which fails   | one archiver, killed with it     |
| ``unity-s3`` | the same, its tables in S3 with an STS| one archiver                     |
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.connect_server import connect_server
from tests.support.object_store import FaultyFront, S3Server
from tests.support.unity_catalog import SPARKS_OWN, UnityCatalogServer

from .places import faults

SCHEMA = "chaos"

_CONNECT_SERVER = Path(__file__).parents[1] / "spark" / "connect_server.py"


@dataclass(slots=True)
class Catalog:
    """What holds the tables of a round.

    Args:
        schema: ``catalog.schema``; it is there.
        conf: of a process's own Spark that has the catalog.
        front: between everybody and the catalog's server; None if there is none.
        tables_at: the folder of the tables, if the catalog tells Spark alone where they are. So
            who reads has no Spark, which has enough to do with what it writes.
    """

    schema: str
    conf: Mapping[str, str]
    front: FaultyFront | None
    tables_at: str | None = None

    def fail(self, how: str, draws: random.Random) -> str:
        """Every request, or of each method so many, fails this way until `heal`."""
        assert self.front is not None
        made, said = faults(how, draws)
        self.front.inject(*made)
        self.front.requests.clear()
        return said

    def heal(self) -> None:
        if self.front is not None:
            self.front.inject()


@contextlib.contextmanager
def catalog(name: str, folder: Path, unity: Path | None) -> Iterator[Catalog]:
    """Starts a catalog with an empty schema, and a Spark Connect server that knows it.

    While the context lasts, the environment says where both are: this process's, and so that of
    those that it starts.

    Args:
        name: of the catalog: `SPARKS_OWN`, or one of a `UnityCatalogServer`'s.
        folder: of the round; what Spark writes without being asked lies there.
        unity: see `UnityCatalogServer`.
    """
    with contextlib.ExitStack() as servers:
        environment: dict[str, str] = {}
        conf: dict[str, str] = {}
        front = None
        if name != SPARKS_OWN:
            assert unity is not None
            s3 = S3Server()
            servers.callback(s3.stop)
            s3.start().make_bucket(UnityCatalogServer.BUCKET)
            server = UnityCatalogServer(unity, s3).start()
            servers.callback(server.stop)
            server.ask("POST", "/schemas", {"name": SCHEMA, "catalog_name": name})
            conf, front = server.spark_conf(), server.front
            environment = {"UNITY_CATALOG_URL": front.url, "AWS_ENDPOINT_URL": s3.url}
        servers.enter_context(_environment(environment))  # Spark's workers have it too
        remote = servers.enter_context(connect_server(_CONNECT_SERVER, folder, conf))
        servers.enter_context(_environment({"SPARK_REMOTE": remote}))
        servers.callback(_forget_session)
        tables_at = None
        if name == SPARKS_OWN:
            tables_at = str(folder / SCHEMA)
            shared_spark().sql(f"CREATE SCHEMA {name}.{SCHEMA} LOCATION '{tables_at}'").collect()
        yield Catalog(f"{name}.{SCHEMA}", conf, front, tables_at)


def shared_spark() -> Any:
    """The session of this process at the round's Spark Connect server."""
    from lakelog.spark import session

    return session()


def _forget_session() -> None:
    """The next round has another server."""
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        active.stop()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

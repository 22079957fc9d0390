"""The Spark of a run, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakelog.spark.session import session
from tests.support.unity_catalog import SPARKS_OWN, UnityCatalogServer

CORES = 2


class LocalSpark:
    """Started when a benchmark first asks for it, ended with the run.

    Args:
        folder: where tables by name go.
        kafka_jars: of Spark's Kafka connector, with commas between them; may be empty.
        unity: a folder that starts a Unity Catalog server, whose catalog the Spark has then.
    """

    def __init__(self, folder: Path, kafka_jars: str = "", unity: Path | None = None) -> None:
        self.has_kafka = bool(kafka_jars)
        self.catalogs = (SPARKS_OWN, *((UnityCatalogServer.CATALOG,) if unity else ()))
        self._folder = folder
        self._jars = kafka_jars
        self._unity_folder = unity
        self._unity: UnityCatalogServer | None = None
        self._session: Any = None
        self._numbers = iter(range(1_000_000))

    def session(self) -> Any:
        if self._session is None:
            self._session = session(cores=CORES, conf=self._conf())
        return self._session

    def restarted(self) -> Any:
        """A session whose workers have done nothing yet; the one before it is over."""
        self._end_session()
        return self.session()

    def new_schema(self, catalog: str = SPARKS_OWN) -> str:
        """A schema without tables, as ``catalog.schema``."""
        name = f"{catalog}.benchmark_{next(self._numbers)}"
        self.session().sql(f"CREATE SCHEMA {name}")
        return name

    def stop(self) -> None:
        self._end_session()
        if self._unity is not None:
            self._unity.stop()
            self._unity = None

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

    def _conf(self) -> dict[str, str]:
        warehouse = self._folder / f"warehouse-{next(self._numbers)}"
        # Frames that a sink writes are cached in memory.
        conf = {"spark.sql.warehouse.dir": str(warehouse), "spark.driver.memory": "4g"}
        jars = [self._jars] if self._jars else []
        if self._unity_folder is not None:
            if self._unity is None:
                self._unity = UnityCatalogServer(self._unity_folder).start()
            of_unity = self._unity.spark_conf()
            jars.append(of_unity.pop("spark.jars"))
            conf |= of_unity
        return conf | ({"spark.jars": ",".join(jars)} if jars else {})

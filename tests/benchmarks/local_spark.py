"""The Spark of a run, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakelog.spark.session import session
from tests.support.unity_catalog import SPARKS_OWN

CORES = 2


class LocalSpark:
    """Started when a benchmark first asks for it, ended with the run.

    Args:
        folder: where tables by name go.
        kafka_jars: of Spark's Kafka connector, with commas between them; may be empty.
    """

    def __init__(self, folder: Path, kafka_jars: str = "") -> None:
        self.has_kafka = bool(kafka_jars)
        self._folder = folder
        self._jars = kafka_jars
        self._session: Any = None
        self._numbers = iter(range(1_000_000))

    def session(self) -> Any:
        if self._session is None:
            warehouse = self._folder / f"warehouse-{next(self._numbers)}"
            # Frames that a sink writes are cached in memory.
            conf = {"spark.sql.warehouse.dir": str(warehouse), "spark.driver.memory": "4g"}
            if self._jars:
                conf["spark.jars"] = self._jars
            self._session = session(cores=CORES, conf=conf)
        return self._session

    def restarted(self) -> Any:
        """A session whose workers have done nothing yet; the one before it is over."""
        self.stop()
        return self.session()

    def new_schema(self) -> str:
        """A schema without tables, as ``catalog.schema``."""
        name = f"{SPARKS_OWN}.benchmark_{next(self._numbers)}"
        self.session().sql(f"CREATE SCHEMA {name}")
        return name

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

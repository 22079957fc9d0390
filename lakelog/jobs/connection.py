"""The log that a notebook's parameters name."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from datetime import timedelta
from functools import partial

from ..archive.watchers import wait_for_redis
from ..base.local_path import OBJECT_STORES, local_path
from ..cold.store.store_options import workspace_options
from ..engines.engine import SPARK
from ..errors import InvalidArgumentError
from ..hot.keys import DEFAULT_KEYSPACE
from ..lakelog import Lakelog
from ..place import LogPlace, PathRoot, cold_root
from ..spark.auto_engine import choose_engine
from ..spark.open_session import session_there
from ..spark.session import session
from ..values.arguments import checked_duration
from .parameters import Parameters, topic_names
from .readings import READINGS, SAMPLE_READINGS, add_readings
from .run_record import TroubleRows


def connect(
    parameters: Parameters,
    *,
    samples: bool = True,
    patience: timedelta = timedelta(),
    engine: str | None = None,
) -> Lakelog:
    """Opens the log at ``redis_url`` and ``cold``, or one with a Redis of its own.

    Without a ``redis_url`` the log is in ``directory`` (a temporary one if that is empty too). Such
    a log is for trying things out: a topic that the parameters name (`READINGS` if they name none
    and there is none) is created, with `SAMPLE_READINGS` readings. Nothing is ever created in a log
    whose Redis is elsewhere. The environment variable LAKELOG_ENGINE (``auto``, ``spark`` or
    ``inline``) chooses what archiving runs on. On Databricks, a URL of tables lies in an external
    location of Unity Catalog: see `workspace_options`.

    Args:
        parameters: with ``directory``, or also with ``redis_url``, ``redis_password_ref``,
            ``cold``, ``location``, ``keyspace``; with ``tenant``, whose topics are meant.
        samples: whether a log with a Redis of its own gets a topic to look at.
        engine: what archives where LAKELOG_ENGINE does not say; a Spark is started now then, and
            standard error says so. None: ``auto``.
        patience: how long to wait for a Redis that is away. Until it answers, rows of
            ``_lakelog_status`` say so once a minute.

    Raises:
        InvalidArgumentError: some parameters do not go together.
        HotTierUnavailableError, HotTierAccessError, ColdTierError: see `Lakelog.connect`.
    """
    patience = checked_duration("patience", patience)
    engine = os.environ.get("LAKELOG_ENGINE") or engine
    if engine == SPARK:
        _start_spark(parameters)
    if parameters.get("redis_url"):
        _refuse(parameters, ["directory"], "redis_url names another log")
        location = parameters.location or None
        options = workspace_options(parameters.location or parameters.cold)
        opened = partial(
            Lakelog.connect,
            parameters.redis_url,
            parameters.cold or None,
            location=location,
            keyspace=parameters.keyspace,
            tenant=_tenant(parameters),
            engine=engine,
            password_ref=parameters.redis_password_ref or None,
            storage_options=options,
        )
        if not patience:
            return opened()
        tell = (
            TroubleRows(root)
            if (root := cold_root(parameters.cold or None, location, options))
            else None
        )
        deadline_s = time.monotonic() + patience.total_seconds()
        return wait_for_redis(opened, threading.Event(), deadline_s, tell) or opened()
    own = "redis_url is empty, so the log has a Redis of its own"
    _refuse(parameters, ["cold", "location", "redis_password_ref"], own)
    if parameters.get("keyspace", DEFAULT_KEYSPACE) != DEFAULT_KEYSPACE:
        _refuse(parameters, ["keyspace"], own)
    log = Lakelog.embedded(_directory(parameters), tenant=_tenant(parameters), engine=engine)
    try:
        if samples:
            _add_samples(log, parameters)
    except BaseException:
        log.close()
        raise
    return log


def _start_spark(parameters: Parameters) -> None:
    """The session that archiving runs on; a new one says so, since that looks like a hang."""
    if session_there() is not None:
        return
    scheme = str(parameters.get("location") or parameters.get("cold") or "").partition("://")[0]
    print(
        "Spark is starting, which takes 5 to 30 s on a laptop; LAKELOG_ENGINE=inline is the quick "
        "look, without it",
        file=sys.stderr,
        flush=True,
    )
    began_s = time.monotonic()
    session(object_stores=[scheme] if scheme in OBJECT_STORES else [])
    print(f"Spark is up after {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)


def connect_cold(parameters: Parameters) -> Lakelog:
    """Opens the tables at ``cold`` (or in ``directory``) alone, without a Redis.

    On Databricks, tables at a path are rewritten in this process unless LAKELOG_ENGINE says
    ``spark``: on serverless, tasks of Spark reach no object store.

    Raises:
        InvalidArgumentError: no place is named.
        ColdTierError: the place cannot hold tables.
    """
    if parameters.cold:
        _refuse(parameters, ["directory"], "cold names another log")
        location = parameters.location
        options = workspace_options(location or parameters.cold)
        root = cold_root(parameters.cold, location or None, options)
    elif parameters.directory:
        _refuse(parameters, ["location"], "it goes with cold=catalog.schema")
        root = cold_root(local_path(parameters.directory, "log's directory") / "cold")
    else:
        raise InvalidArgumentError(
            "cold_only is true, but neither cold nor directory says where the tables lie"
        )
    place, tenant = LogPlace(None, root, parameters.get("keyspace")), _tenant(parameters)
    place = place if tenant is None else place.of_tenant(tenant)
    chosen = os.environ.get("LAKELOG_ENGINE") or None
    if chosen is None and isinstance(root, PathRoot) and "DATABRICKS_RUNTIME_VERSION" in os.environ:
        chosen = "inline"
    return Lakelog.at(place, choose_engine(chosen, place.object_stores))


def _tenant(parameters: Parameters) -> str | None:
    return parameters.get("tenant") or None


def _directory(parameters: Parameters) -> str:
    return parameters.directory or tempfile.mkdtemp(prefix="lakelog-")


def _add_samples(log: Lakelog, parameters: Parameters) -> None:
    there = {topic.name for topic in log.topics.list()}
    asked = topic_names(str(parameters.get("topic") or parameters.get("topics") or ""))
    wanted = set(asked if asked is not None else () if there else (READINGS,))
    for name in sorted(wanted - there):
        add_readings(log, name, SAMPLE_READINGS)


def _refuse(parameters: Parameters, names: list[str], why: str) -> None:
    for name in names:
        if parameters.get(name):
            raise InvalidArgumentError(
                f"parameter {name} is {parameters.get(name)!r}, but {why}; leave {name} empty, or "
                "give redis_url and cold together",
                name=name,
            )

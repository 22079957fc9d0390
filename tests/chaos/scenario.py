"""Where a round happens, with which topics, and what may happen to it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .history import Kind
from .schedule import Lane

#: What is done to processes, in every scenario.
_PROCESSES = Lane(
    (
        "kill-producer",
        "stop-producer",
        "kill-archiver",
        "stop-archiver",
        "kill-consumer",
        "stop-consumer",
        "kill-member",
        "stop-member",
        "kill-janitor",
        "stop-janitor",
        "kill-sink",
        "stop-sink",
        "recreate-topic",
    ),
    pause_s=1.0,
    longest_s=8.0,
    overlaps=True,
)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic of every round."""

    kind: Kind
    partitions: int
    config: Mapping[str, object]
    is_recreated: bool = False


_SMALL = {
    "internal.segment.bytes": 32 * 1024,
    "lakelog.flush.interval.ms": 400,
    "local.retention.ms": 1500,
    "retention.ms": -1,
}

#: By name. Compaction needs closed segments and a low dirty ratio to happen at all in a minute.
TOPICS: Mapping[str, TopicSpec] = {
    "plain": TopicSpec(Kind.PLAIN, 2, _SMALL),
    "compacted": TopicSpec(
        Kind.COMPACTED,
        1,
        {
            **_SMALL,
            "cleanup.policy": "compact",
            "internal.segment.bytes": 8 * 1024,
            "min.cleanable.dirty.ratio": 0.1,
            # A tombstone that is forgotten takes its key with it, and no record is left to tell.
            "delete.retention.ms": 24 * 3_600_000,
        },
    ),
    "retained": TopicSpec(
        Kind.RETAINED, 1, {**_SMALL, "internal.segment.bytes": 8192, "retention.bytes": 65536}
    ),
    "untiered": TopicSpec(
        Kind.RETAINED,
        1,
        {
            "remote.storage.enable": "false",
            "internal.segment.bytes": 8192,
            "retention.bytes": 131072,
            "retention.ms": -1,
        },
    ),
    # Keys are erased from it.
    "personal": TopicSpec(Kind.PLAIN, 1, _SMALL),
    "reborn": TopicSpec(Kind.PLAIN, 1, _SMALL, is_recreated=True),
}


#: What keys are erased from.
ERASED_TOPIC = "personal"

#: What the Spark stream reads: a topic that nothing is deleted from.
STREAMED_TOPIC = "plain"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A place and what is done to it."""

    place: str  # a name of `places`
    acks: tuple[str, ...]  # of the producers, in turn
    durable: tuple[str, ...]  # of these, what no act of this scenario may take
    lanes: tuple[Lane, ...]
    redis: Mapping[str, str]  # settings of its servers
    has_store: bool = False  # the cold tier is an object store that fails, not a folder
    has_clock: bool = False  # everybody goes by a clock that jumps
    may_stream: bool = False  # in long rounds a Spark stream reads along
    loses_redis: bool = False  # all of it, now and then; its topics are restored
    catalog: str | None = None  # the tables are this one's, by name; see `catalogs`
    has_gateways: bool = False  # producers and members are clients of Kafka; see `kafka_clients`


#: A topic is archived within a second or two, so that most of it comes back.
_LOSSES = ("lose-redis", "empty-redis", "kill-redis", "cut-redis")

_SERVER = ("kill-redis", "cut-redis", "stop-redis", "full-redis")

#: By name there are Sparks, whose start takes as long as many acts.
_LIGHT = Lane(
    tuple(name for name in _PROCESSES.nemeses if not name.endswith(("archiver", "janitor"))),
    pause_s=3.0,
    longest_s=8.0,
    overlaps=True,
)
_HEAVY = Lane(
    ("kill-archiver", "stop-archiver", "kill-janitor", "stop-janitor"),
    pause_s=20.0,
    longest_s=15.0,
    overlaps=True,
)
_UNITY_CATALOG = Lane(
    (
        "catalog-503",
        "catalog-429",
        "catalog-500",
        "catalog-hangs",
        "catalog-loses-replies",
        "catalog-cuts-answers",
    ),
    pause_s=6.0,
    longest_s=60.0,
)
#: After each loss offsets are reserved by a commit, to which an archive under way loses.
_BY_NAME = (_LIGHT, _HEAVY, Lane(_SERVER, pause_s=30.0, longest_s=10.0))

#: Topics are not made again there: see `chaos_round` of tables that are made amid all that.
_ON_UNITY = (
    replace(_LIGHT, nemeses=tuple(one for one in _LIGHT.nemeses if one != "recreate-topic")),
    *_BY_NAME[1:],
    _UNITY_CATALOG,
)

#: Clients of Kafka are not told which life of a topic they read.
_GATEWAYS = replace(
    _PROCESSES,
    nemeses=(
        *(one for one in _PROCESSES.nemeses if one != "recreate-topic"),
        *("kill-gateway", "stop-gateway") * 2,
    ),
)

#: Keyspace defaults where there are gateways: members that are killed are soon given up.
GATEWAY_DEFAULTS = {
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.heartbeat.interval.ms": 1_000,
}

SCENARIOS: Mapping[str, Scenario] = {
    "local": Scenario(
        "single",
        ("memory",),
        (),
        (_PROCESSES, Lane(_SERVER, pause_s=4.0, longest_s=12.0)),
        {},
        may_stream=True,
    ),
    # With `appendfsync always` no kill takes anything, whatever the producer asked for.
    "store": Scenario(
        "single",
        ("fsync", "memory"),
        ("fsync", "memory"),
        (
            _PROCESSES,
            Lane(("kill-redis", "stop-redis"), pause_s=8.0, longest_s=6.0),
            Lane(
                (
                    "store-503",
                    "store-429",
                    "store-500",
                    "store-hangs",
                    "store-loses-replies",
                    "store-cuts-answers",
                ),
                pause_s=2.5,
                longest_s=150.0,
            ),
        ),
        {"appendfsync": "always"},
        has_store=True,
    ),
    # With one replica a master, what that one confirmed outlives the master.
    "cluster": Scenario(
        "cluster",
        ("memory", "replicas=1"),
        ("replicas=1",),
        (
            _PROCESSES,
            Lane(("kill-master", "stop-master", "depose-master"), pause_s=6.0, longest_s=8.0),
        ),
        {},
    ),
    "clock": Scenario(
        "single",
        ("memory",),
        (),
        (
            _PROCESSES,
            Lane(("cut-redis", "kill-redis"), pause_s=3.0, longest_s=3.0),
            Lane(("clock-jumps",), pause_s=1.5, longest_s=0.1),
        ),
        {},
        has_clock=True,
    ),
    "lost": Scenario(
        "single",
        ("memory",),
        (),
        (_PROCESSES, Lane(_LOSSES, pause_s=6.0, longest_s=6.0)),
        {},
        loses_redis=True,
    ),
    "named": Scenario("single", ("memory",), (), _BY_NAME, {}, catalog="spark_catalog"),
    "gateway": Scenario(
        "single",
        ("fsync",),
        ("fsync",),
        (_GATEWAYS, Lane(("kill-redis", "stop-redis"), pause_s=6.0, longest_s=6.0)),
        {"appendfsync": "always"},
        has_gateways=True,
    ),
    # What a replica had not got yet goes with its master, and a gap says so.
    "gateway-failover": Scenario(
        "cluster",
        ("memory",),
        (),
        (
            _GATEWAYS,
            Lane(("kill-master", "stop-master", "depose-master"), pause_s=6.0, longest_s=8.0),
        ),
        {},
        has_gateways=True,
    ),
    "unity": Scenario("single", ("memory",), (), _ON_UNITY, {}, catalog="unity"),
    "unity-s3": Scenario("single", ("memory",), (), _ON_UNITY, {}, catalog="unity_s3"),
}

#: What a run takes unless it is told: those that need neither Spark nor a server from elsewhere.
USUAL = tuple(name for name, scenario in SCENARIOS.items() if scenario.catalog is None)

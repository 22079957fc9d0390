"""Topics: what is legal, who wins, and what a creation that was cut short leaves behind."""

from __future__ import annotations

import subprocess
import sys
import uuid
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from lakelog.errors import (
    ApplyFailedError,
    ConcurrentConfigChangeError,
    ForeignEntryError,
    InvalidArgumentError,
    InvalidConfigError,
    InvalidTopicError,
    RecoveryNeededError,
    TopicPurgedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot import HotLog, TopicRegistry
from lakelog.hot.declared_topics import DeclaredTopic, apply
from lakelog.hot.keys import Keys
from lakelog.hot.topic_definition import settings_text
from lakelog.values.config import DAY_MS
from lakelog.values.topic_partition import TopicPartition

NOW_MS = 1_700_000_000_000
GAP = 2**24


@pytest.fixture
def hot(redis_url):
    hot = HotLog.connect(redis_url)
    yield hot
    hot.close()


@pytest.fixture
def topics(hot):
    return hot.topics()


# -- create, get, list -------------------------------------------------------------------------


def test_a_mistyped_name_is_told_which_are_near(topics):
    for name in ("orders", "returns", "order.lines"):
        topics.create(name)
    with pytest.raises(
        UnknownTopicOrPartitionError, match=r"; did you mean 'orders' or 'order.lines'\? Else "
    ):
        topics.get("ordres")
    with pytest.raises(UnknownTopicOrPartitionError, match=r"'lakelog'; create it with"):
        topics.get("flights")


def test_a_created_topic_is_what_get_and_list_say(topics):
    created = topics.create("orders", 3, {"retention.ms": 5, "segment.bytes": 2**20})
    assert created == topics.get("orders")
    assert created.partitions == 3
    assert created.config["retention.ms"] == 5
    other = topics.create("a-topic")
    assert topics.list() == [other, created]
    assert other.topic_id != created.topic_id


def test_one_that_is_there_already_is_given_as_it_is_if_that_is_asked_for(topics):
    first = topics.create("t", 2, {"retention.ms": "1d"}, if_not_exists=True)
    again = topics.create("t", 5, {"retention.ms": "2d"}, if_not_exists=True)
    assert (again.topic_id, again.partitions) == (first.topic_id, 2)
    assert again.config["retention.ms"] == 86_400_000
    with pytest.raises(InvalidTopicError):
        topics.create("no name", if_not_exists=True)
    assert repr(topics) == "TopicRegistry(keyspace='lakelog')"


def test_no_such_topic(topics):
    for ask in (topics.get, topics.delete, lambda name: topics.alter(name, {})):
        with pytest.raises(UnknownTopicOrPartitionError, match="no topic 'orders'"):
            ask("orders")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "a:b", "a{b", "ä", "a/b", "x" * 250, "a\n", None, 5]
)
def test_illegal_names(topics, redis_client, name):
    for ask in (topics.create, topics.get):
        with pytest.raises(InvalidTopicError):
            ask(name)
    assert redis_client.keys() == []


@pytest.mark.parametrize("name", ["_lakelog_status", "_lakelog-status", "_Lakelog.Status"])
def test_a_topic_does_not_lie_where_the_table_of_job_runs_does(topics, redis_client, name):
    with pytest.raises(InvalidTopicError, match="the table of job runs"):
        topics.create(name)
    assert redis_client.keys() == []


@pytest.mark.parametrize("name", ["x" * 249, "a", "A.b_c-1", "...", "0"])
def test_legal_names(topics, name):
    assert topics.create(name).name == name


@pytest.mark.parametrize("partitions", [0, -1, 10_001, 1.5, "2", True, None])
def test_illegal_partition_counts(topics, redis_client, partitions):
    with pytest.raises(InvalidTopicError, match=r"1\.\.10000"):
        topics.create("orders", partitions)
    assert redis_client.keys() == []


@pytest.mark.parametrize("keyspace", ["", "a{b", "a}b", "a b", "a\tb", "\x00", None])
def test_illegal_keyspaces(redis_url, keyspace):
    with pytest.raises(InvalidArgumentError, match="keyspace"):
        HotLog.connect(redis_url, keyspace)


# -- alter, add partitions ---------------------------------------------------------------------


def test_value_columns_can_only_be_added(topics):
    topics.create("flights", 1, {"lakelog.value.columns": "flight int"})
    more = "origin string, flight int COMMENT 'number'"
    assert topics.alter("flights", {"lakelog.value.columns": more}).config.value_columns == more
    for less in ("origin string", "origin string, flight bigint", None):
        with pytest.raises(InvalidConfigError, match="columns can only be added"):
            topics.alter("flights", {"lakelog.value.columns": less})
    assert topics.get("flights").config.value_columns == more


def test_alter_refuses_what_is_not_legal_and_changes_nothing(topics):
    created = topics.create("orders", config={"retention.ms": 10})
    for changes in (
        {"retention.mss": 1},
        {"retention.ms": -5},
        {"local.retention.ms": 20},
        {"remote.storage.enable": False},
    ):
        with pytest.raises(InvalidConfigError):
            topics.alter("orders", changes)
    assert topics.get("orders") == created


def test_a_change_meanwhile_is_noticed(topics, monkeypatch):
    topics.create("orders")
    stale = topics.get("orders")
    topics.alter("orders", {"retention.ms": 1})
    monkeypatch.setattr(TopicRegistry, "get", lambda self, name: stale)
    with pytest.raises(ConcurrentConfigChangeError):
        topics.alter("orders", {"retention.ms": 2})
    with pytest.raises(ConcurrentConfigChangeError):
        topics.add_partitions("orders", 5)
    monkeypatch.undo()
    assert topics.get("orders").config["retention.ms"] == 1
    assert topics.get("orders").partitions == 1


def test_partitions_only_grow(make_bench):
    bench = make_bench(2)
    bench.append(NOW_MS, partition=1)
    grown = bench.hot.topics().add_partitions("orders", 4)
    assert grown == bench.hot.topics().get("orders")
    bench.topic = grown
    assert [bench.append(NOW_MS, partition=p).base_offset for p in range(4)] == [0, 1, 0, 0]
    assert bench.hot.topics().add_partitions("orders", 4) == grown
    with pytest.raises(InvalidTopicError, match="cannot shrink"):
        bench.hot.topics().add_partitions("orders", 3)


# -- drop and recreate -------------------------------------------------------------------------


def test_delete_leaves_nothing_of_the_topic(make_bench):
    bench = make_bench(3)
    for partition in range(3):
        bench.append(NOW_MS, partition=partition)
    topics = bench.hot.topics()
    deleted = topics.delete("orders")
    assert deleted == replace(bench.topic, deleted_ms=NOW_MS)
    assert in_place(bench) == []
    assert topics.list() == []
    assert topics.deleted("orders") == [deleted]
    topics.end_purge(topics.begin_purge(deleted))
    assert bench.client.keys("*orders*") == []
    assert topics.deleted() == []
    with pytest.raises(TopicPurgedError):
        topics.begin_purge(deleted)


def in_place(bench):
    """The keys of the topic but for what is kept of deleted ones."""
    return [key for key in bench.client.keys("*orders*") if b":deleted:" not in key]


def test_the_stale_of_a_recreated_topic_reach_nothing(make_bench, make_batch):
    bench = make_bench(remote_storage_enable=False)
    topics, stale = bench.hot.topics(), bench.topic
    topics.delete("orders")
    fresh = topics.create("orders", config=stale.config)
    assert fresh.topic_id != stale.topic_id
    bench.topic = fresh
    bench.append(NOW_MS, NOW_MS)
    dump, tp, old = bench.dump(), bench.tp(), stale.topic_id
    for attempt in (
        lambda: bench.hot.append(tp, old, make_batch([NOW_MS])),
        lambda: list(bench.hot.read(tp, 0, topic_id=old)),
        lambda: bench.hot.offsets([tp], topic_id=old),
        lambda: bench.hot.trim(tp, 1, topic_id=old),
        lambda: bench.hot.raise_log_start(tp, 1, topic_id=old),
        lambda: bench.hot.offset_for_timestamp(tp, 0, topic_id=old),
        lambda: bench.hot.max_timestamp(tp, topic_id=old),
        lambda: topics.repair(stale),
    ):
        with pytest.raises(UnknownTopicIdError):
            attempt()
    assert bench.dump() == dump


def test_a_deletion_in_the_middle_of_a_repair_is_noticed(make_bench, monkeypatch):
    bench = make_bench(2)
    topics, init = bench.hot.topics(), TopicRegistry._init

    def init_after_the_deletion(self, topic, topic_partition, *more):
        if topic_partition.partition == 1:
            HotLog.connect(bench.url).topics().delete("orders")
        init(self, topic, topic_partition, *more)

    monkeypatch.setattr(TopicRegistry, "_init", init_after_the_deletion)
    with pytest.raises(UnknownTopicIdError):
        topics.repair(bench.topic)
    assert in_place(bench) == []


def test_a_stale_creator_cannot_wipe_a_newer_topic(make_bench):
    """It died between the definition and the partitions, and wakes up after a recreation."""
    bench = make_bench()
    topics, stale = bench.hot.topics(), bench.topic
    topics.delete("orders")
    bench.topic = topics.create("orders")
    bench.append(NOW_MS)
    dump = bench.dump()
    with pytest.raises(ConcurrentConfigChangeError):
        topics._init(stale, bench.tp(), "1 2 3", ("a run",))
    assert bench.dump() == dump


def test_creations_of_one_name_are_ordered_though_clocks_are_not(topics, redis_client):
    far = 4_000_000_000_000_000
    redis_client.hset("lakelog:topics", "#created_us", far)
    assert topics.create("orders").generation == far + 1
    topics.delete("orders")
    assert topics.create("orders").generation == far + 2


# -- cut short ---------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["create", "delete", "set_defaults"])
def test_no_version_comes_again_after_redis_lost_what_it_counted(topics, redis_client, change):
    def make():
        topics.create("flights")
        if change == "delete":
            topics.delete("flights")
        elif change == "set_defaults":
            topics.set_defaults({"log.retention.ms": DAY_MS})
        return topics.version()

    seen = make()
    redis_client.flushall()
    assert make() != seen


@contextmanager
def dying_at(partition):
    """The process ends just before it makes or changes that partition."""
    init = TopicRegistry._init

    def init_or_die(self, topic, topic_partition, *more):
        if topic_partition.partition == partition:
            raise KeyboardInterrupt
        init(self, topic, topic_partition, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicRegistry, "_init", init_or_die)
        yield


@pytest.mark.parametrize("partition", [0, 1, 2])
def test_a_creation_that_was_cut_short_is_finished(make_bench, partition):
    bench = make_bench(name="other")
    topics = bench.hot.topics()
    with dying_at(partition), pytest.raises(KeyboardInterrupt):
        topics.create("orders", 3)
    bench.topic = topics.get("orders")
    with pytest.raises(UnknownTopicOrPartitionError, match="topics apply"):
        bench.append(NOW_MS, partition=2)
    topics.repair(bench.topic)
    assert [bench.append(NOW_MS, partition=p).base_offset for p in range(3)] == [0, 0, 0]
    assert topics.get("orders") == bench.topic


def test_an_alteration_that_was_cut_short_is_finished(make_bench):
    bench = make_bench(2)
    topics = bench.hot.topics()
    with dying_at(1), pytest.raises(KeyboardInterrupt):
        topics.alter("orders", {"internal.segment.bytes": 150})
    topics.repair(topics.get("orders"))
    for partition in range(2):
        for _ in range(2):
            bench.append(NOW_MS, partition=partition, value_bytes=100)
        assert len(bench.offsets(partition).segments) == 2
    version = bench.client.hget(bench.keys(1)[1], "config_version")
    topics.repair(bench.topic)  # an older look changes nothing back
    assert bench.client.hget(bench.keys(1)[1], "config_version") == version


def test_a_lost_partition_is_not_taken_for_one_that_never_was(make_bench):
    """Its offsets were given: they are not given again."""
    bench = make_bench(2)
    bench.append(NOW_MS, NOW_MS)
    bench.client.delete(*bench.keys())
    topics = bench.hot.topics()
    topics.repair(bench.topic)
    with pytest.raises(RecoveryNeededError):
        bench.append(NOW_MS)
    assert not bench.offsets().recovered
    assert bench.hot.recover(bench.tp(), 2).log_end == GAP + 2
    assert bench.append(NOW_MS).base_offset == GAP + 2
    assert bench.append(NOW_MS, partition=1).base_offset == 0


def test_a_partition_lost_while_its_topic_was_being_created_is_recovered(make_redis, make_bench):
    """The definition survived the crash, the partition that others used already did not."""
    server = make_redis()
    bench = make_bench(url=server.url, name="other")
    topics = bench.hot.topics()
    with dying_at(0), pytest.raises(KeyboardInterrupt):
        topics.create("orders", 2)
    size = server.append_only_size()
    bench.topic = topics.get("orders")
    runs = (bench.hot.servers()[0].run_id,)
    topics._init(bench.topic, bench.tp(0), settings_text(bench.topic.config), runs)
    assert bench.append(NOW_MS).base_offset == 0
    server.cut_append_only_file(to_size=size)
    server.start()
    topics.repair(bench.topic)
    with pytest.raises(RecoveryNeededError):
        bench.append(NOW_MS)
    bench.hot.recover(bench.tp(), 1)
    assert bench.append(NOW_MS).base_offset == GAP + 1


# -- what the keyspace sets for all ------------------------------------------------------------


def test_defaults_reach_the_topics_that_are_there(make_redis, redis_program, make_bench):
    bench = make_bench(2, url=make_redis(program=redis_program).url)
    topics = bench.hot.topics()
    bench.append(NOW_MS)
    assert topics.set_defaults({"log.roll.hours": 1, "log.roll.ms": 50}) == {
        "log.roll.hours": "1",
        "log.roll.ms": "50",
    }
    assert topics.defaults() == {"log.roll.hours": "1", "log.roll.ms": "50"}
    topic = topics.get("orders")
    assert topic == topics.list()[0]
    assert (topic.config["segment.ms"], topic.config.source("segment.ms")) == (50, "keyspace")
    assert topic.config_version == bench.topic.config_version + 1
    for partition in range(2):
        assert written_settings(bench, partition) == settings_text(topic.config)
    bench.append(NOW_MS + 50)
    bench.append(NOW_MS + 51)
    assert bench.bases() == [0, 2]


def test_settings_are_legal_by_what_is_in_effect(topics):
    topics.set_defaults({"log.retention.hours": -1})
    month = {"local.retention.ms": 30 * DAY_MS}
    assert topics.create("orders", config=month).config["retention.ms"] == -1
    with pytest.raises(InvalidConfigError, match=r"topic 'orders' would contradict itself: local"):
        topics.set_defaults({"log.retention.hours": None})
    with pytest.raises(InvalidConfigError, match="'orders'") as caught:
        topics.set_defaults({"log.retention.ms": 30 * DAY_MS - 1})
    assert (caught.value.topic, caught.value.name) == ("orders", "local.retention.ms")
    assert topics.defaults() == {"log.retention.hours": "-1"}
    topics.set_defaults({"log.retention.ms": 30 * DAY_MS, "log.local.retention.ms": DAY_MS})
    with pytest.raises(
        InvalidConfigError, match=r"\(the keyspace's\) must be at most retention\.ms"
    ):
        topics.create("short", config={"retention.ms": DAY_MS - 1})
    with pytest.raises(InvalidConfigError, match=r"\(the keyspace's\)"):
        topics.alter("orders", {"local.retention.ms": 31 * DAY_MS})


def test_defaults_that_are_not_legal_change_nothing(topics, redis_client):
    created = topics.create("orders")
    before = redis_client.hgetall("lakelog:topics")
    for changes in (
        {"retention.ms": 1},
        {"log.retention.hour": 1},
        {"log.retention.hours": 0},
        {"log.retention.hours": 1, "log.roll.ms": 0},
    ):
        with pytest.raises(InvalidConfigError):
            topics.set_defaults(changes)
    assert redis_client.hgetall("lakelog:topics") == before
    assert topics.get("orders") == created


@pytest.mark.parametrize(
    "finish",
    [
        lambda topics: topics.repair(topics.get("orders")),
        lambda topics: topics.set_defaults({}),
        lambda topics: topics.set_defaults({"log.roll.ms": 50}),
        lambda topics: topics.alter("orders", {"retention.ms": 5}),
        lambda topics: apply(topics, [DeclaredTopic("orders", 2, (), "orders.yml")]),
    ],
)
@pytest.mark.parametrize("partition", [0, 1])
def test_a_change_of_defaults_that_was_cut_short_is_finished(make_bench, partition, finish):
    bench = make_bench(2)
    topics = bench.hot.topics()
    with dying_at(partition), pytest.raises(KeyboardInterrupt):
        topics.set_defaults({"log.roll.ms": 50})
    assert topics.defaults() == {"log.roll.ms": "50"}
    stale = settings_text(bench.topic.config)
    assert [written_settings(bench, p) for p in range(partition, 2)] == [stale] * (2 - partition)
    finish(topics)
    now = settings_text(topics.get("orders").config)
    assert now != stale
    assert [written_settings(bench, p) for p in range(2)] == [now] * 2
    topics.repair(bench.topic)  # an older look changes nothing back
    assert [written_settings(bench, p) for p in range(2)] == [now] * 2


def meanwhile(monkeypatch, method, other):
    """Somebody else acts when ours has looked and not yet written."""
    original = getattr(TopicRegistry, method)

    def look(self, *arguments):
        found = original(self, *arguments)
        monkeypatch.undo()
        other()
        return found

    monkeypatch.setattr(TopicRegistry, method, look)


@pytest.mark.parametrize(
    "other",
    [
        lambda topics: topics.set_defaults({"log.retention.ms": 9}),
        lambda topics: topics.alter("orders", {"retention.ms": 9}),
        lambda topics: topics.create("late"),
    ],
)
def test_defaults_are_not_set_over_a_change_meanwhile(topics, monkeypatch, other):
    topics.create("orders")
    meanwhile(monkeypatch, "_everything", lambda: other(topics))
    with pytest.raises(ConcurrentConfigChangeError):
        topics.set_defaults({"log.retention.ms": 1})
    assert topics.defaults().get("log.retention.ms") != "1"
    topics.set_defaults({"log.retention.ms": 1})


@pytest.mark.parametrize(
    "change",
    [
        lambda topics: topics.alter("orders", {"retention.ms": 2}),
        lambda topics: topics.add_partitions("orders", 5),
    ],
)
def test_a_topic_is_not_changed_over_defaults_that_changed_meanwhile(topics, monkeypatch, change):
    topics.create("orders")
    meanwhile(monkeypatch, "get", lambda: topics.set_defaults({"log.local.retention.ms": 9}))
    with pytest.raises(ConcurrentConfigChangeError):
        change(topics)
    assert topics.get("orders").partitions == 1
    assert topics.get("orders").config.overrides == ()


def test_a_topic_is_created_under_the_defaults_of_that_moment(make_bench, monkeypatch):
    bench = make_bench(name="other")
    topics = bench.hot.topics()
    meanwhile(monkeypatch, "_defaults", lambda: topics.set_defaults({"log.roll.ms": 9}))
    bench.topic = topics.create("orders")
    assert bench.topic == topics.get("orders")
    assert bench.topic.config["segment.ms"] == 9
    assert written_settings(bench) == settings_text(bench.topic.config)


def test_a_topic_deleted_while_defaults_are_set_stays_deleted(make_bench, monkeypatch):
    bench = make_bench()
    topics = bench.hot.topics()
    other = topics.create("other")
    meanwhile(monkeypatch, "_everything", lambda: topics.delete("orders"))
    topics.set_defaults({"log.roll.ms": 9})
    assert in_place(bench) == []
    bench.topic = topics.get(other.name)
    assert written_settings(bench) == settings_text(bench.topic.config)


def test_a_topic_that_cannot_be_repaired_keeps_no_other_from_the_defaults(make_bench):
    bench = make_bench(name="orders")
    topics = bench.hot.topics()
    topics.create("a-broken-one")
    stream = Keys().partition(TopicPartition("a-broken-one", 0)).stream
    bench.client.delete(f"{{{stream}}}:state")
    bench.client.set(stream, "precious")
    topics.create("another")
    stream = Keys().partition(TopicPartition("another", 0)).stream
    bench.client.delete(f"{{{stream}}}:state")
    bench.client.set(stream, "precious")
    with pytest.raises(ApplyFailedError, match=r"a-broken-one: .*another: ") as failed:
        topics.set_defaults({"log.roll.ms": 9})
    assert {topic: type(error) for topic, error in failed.value.errors.items()} == {
        "a-broken-one": ForeignEntryError,
        "another": ForeignEntryError,
    }
    assert written_settings(bench) == settings_text(topics.get("orders").config)


def written_settings(bench, partition=0):
    return bench.client.hget(bench.keys(partition)[1], "settings").decode()


# -- somebody else's keys ----------------------------------------------------------------------


def test_definitions_that_are_not_ours(topics, redis_client):
    for text in ("{", '{"name": 1}', '{"name":"x","topic_id":"1"}'):
        redis_client.hset("lakelog:topics", "orders", text)
        with pytest.raises(ForeignEntryError):
            topics.get("orders")
    redis_client.delete("lakelog:topics")
    topics.create("orders")
    for text in ("{", '{"settings": {"log.roll.ms": "-5"}, "version": 1}', '{"settings": {}}'):
        redis_client.hset("lakelog:topics", "#defaults", text)
        for ask in (topics.defaults, topics.list, lambda: topics.get("orders")):
            with pytest.raises(ForeignEntryError, match="no defaults of a keyspace"):
                ask()
    redis_client.delete("lakelog:topics")
    redis_client.set("lakelog:topics", "text")
    for ask in (topics.get, topics.create):
        with pytest.raises(ForeignEntryError):
            ask("orders")


# -- at the same time --------------------------------------------------------------------------

CREATE = """
import sys
from lakelog.errors import TopicExistsError
from lakelog.hot import HotLog
topics = HotLog.connect(sys.argv[1]).topics()
print("ready", flush=True)
sys.stdin.readline()
wins = []
for number in range(10):
    try:
        wins.append((number, str(topics.create(f"race-{number}", 2).topic_id)))
    except TopicExistsError:
        pass
print(wins)
"""


def test_of_many_creators_exactly_one_wins(redis_url, topics):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CREATE, redis_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    won = [win for process in processes for win in eval(process.communicate()[0])]
    assert sorted(number for number, _ in won) == list(range(10))
    assert {(f"race-{number}", uuid.UUID(topic_id)) for number, topic_id in won} == {
        (topic.name, topic.topic_id) for topic in topics.list()
    }

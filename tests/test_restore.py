"""A Redis that is lost altogether: what its tables tell comes back, and nothing is used twice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.errors import (
    AmbiguousTopicError,
    KeyspaceInUseError,
    RestoreFailedError,
    TopicExistsError,
    UnknownProducerError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.topic_partition import TopicPartition
from tests.support.servers import RedisServer

NAMES = ("audit", "orders")


def open_log(url: str, tmp_path: Path, keyspace: str = "lakelog") -> Lakelog:
    return Lakelog.connect(url, tmp_path / "cold", keyspace=keyspace, engine="inline")


def send(lake: Lakelog, topic: str, count: int, text: str = "v") -> list[int]:
    with lake.producer() as producer:
        sent = [
            producer.send(topic, key=b"k", value=f"{text}{n}".encode(), partition=0)
            for n in range(count)
        ]
    return [one.result().offset for one in sent]


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    """Two topics, archived but for the last five records of each."""
    with open_log(redis_url, tmp_path) as lake:
        lake.topics.set_defaults({"log.retention.hours": 77})
        for name in NAMES:
            lake.topics.create(name, 3, {"max.message.bytes": 99_999})
            send(lake, name, 40)
        lake.archive()
        for name in NAMES:
            send(lake, name, 5, "hot ")
        yield lake


def values(lake: Lakelog, topic: str, start: int = 0) -> list[bytes]:
    return list(lake.log(topic).read(0, start).to_arrow().column("value").to_pylist())


ARCHIVED = [b"v%d" % n for n in range(40)]


def test_a_lost_redis_comes_back_from_its_tables(lake: Lakelog, redis_client: redis.Redis) -> None:
    before = {topic.name: topic for topic in lake.topics.list()}
    redis_client.flushall()
    assert lake.topics.list() == []
    assert [topic.name for topic in lake.restorable()] == list(NAMES)

    restored = lake.restore()

    assert [one.topic.name for one in restored] == list(NAMES)
    assert lake.restorable() == []
    for name, topic in before.items():
        found = lake.topics.get(name)
        assert (found.topic_id, found.partitions, found.generation, found.config) == (
            topic.topic_id,
            topic.partitions,
            topic.generation,
            topic.config,
        )
        assert found.keyspace_id == topic.keyspace_id
        assert found.config_version > topic.config_version
        assert values(lake, name) == ARCHIVED
    assert lake.topics.defaults() == {"log.retention.hours": "77"}
    # Offsets 40..44 were given out and are gone: they name no other record.
    (first,) = send(lake, "orders", 1, "after")
    assert first > 44
    assert lake.log("orders").offsets()[0].gaps[0].start == 40
    assert values(lake, "orders") == [*ARCHIVED, b"after0"]
    lake.archive()
    assert values(lake, "orders") == [*ARCHIVED, b"after0"]
    assert lake.topics.alter("orders", {"retention.ms": 5}).config["retention.ms"] == 5
    table = lake.archived.topics.get("orders")
    assert table.config["retention.ms"] == 5


def test_a_name_whose_table_is_there_is_not_begun_anew_unawares(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    redis_client.flushall()
    with pytest.raises(TopicExistsError, match=r"restore\('orders'\).*--anew"):
        lake.topics.create("orders")
    with pytest.raises(TopicExistsError, match=r"tables of topics .*audit, orders"):
        lake.topics.create("new")
    with pytest.raises(UnknownTopicOrPartitionError, match=r"restore\('orders'\)"):
        lake.log("orders")
    with pytest.raises(UnknownTopicOrPartitionError, match=r"topics\.create\('new'\)"):
        lake.log("new")
    lake.restore("audit")
    lake.topics.create("new")  # the keyspace is not empty any more
    with pytest.raises(TopicExistsError, match="which Redis has lost"):
        lake.topics.create("orders")

    anew = lake.topics.create("orders", anew=True)
    assert send(lake, "orders", 1) == [0]
    lake.archive()
    assert lake.archived.topics.get("orders").topic_id == anew.topic_id
    assert lake.restorable() == []


def test_topics_that_came_since_are_not_mixed_with_those_of_before(
    lake: Lakelog, redis_client: redis.Redis, redis_url: str
) -> None:
    redis_client.flushall()
    with Lakelog.connect(redis_url, engine="inline") as without_cold:
        without_cold.topics.create("since", 1, {"remote.storage.enable": False})
    assert lake.restorable() == []
    with pytest.raises(RestoreFailedError, match=r"made since \(since\)") as caught:
        lake.restore()
    assert [type(one) for one in caught.value.errors.values()] == [KeyspaceInUseError] * 2
    assert caught.value.restored == ()
    assert [topic.name for topic in lake.topics.list()] == ["since"]
    lake.topics.delete("since")
    assert len(lake.restore()) == 2


def test_another_redis_of_that_keyspace_does_not_begin_beside_it(
    lake: Lakelog, tmp_path: Path, make_redis: Callable[..., RedisServer]
) -> None:
    with (
        open_log(make_redis().url, tmp_path) as other,
        pytest.raises(TopicExistsError, match="choose another keyspace or cold root"),
    ):
        other.topics.create("invoices")
    with open_log(make_redis().url, tmp_path, "other") as other:
        other.topics.create("invoices")
        other.topics.create("orders")
        assert other.restorable() == []
    assert values(lake, "orders") == [*ARCHIVED, *(b"hot %d" % n for n in range(5))]


def test_two_that_restore_at_once_do_it_once(
    lake: Lakelog, redis_client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    redis_client.flushall()
    script = (
        "import sys\nfrom lakelog import Lakelog\n"
        "with Lakelog.connect(sys.argv[1], sys.argv[2], engine='inline') as lake:\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    print(len(lake.restore(['audit', 'orders'])))\n"
    )
    command = [sys.executable, "-c", script, redis_url, str(tmp_path / "cold")]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda p=process: found.append(p.communicate("go\n")[0]))
        for process in processes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["2\n"] * 3
    assert values(lake, "orders") == ARCHIVED
    (first,) = send(lake, "orders", 1)
    assert first > 44


def test_a_restore_that_was_cut_short_is_finished_by_the_next(
    lake: Lakelog, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_client.flushall()

    class Cut(BaseException):
        pass

    from lakelog.hot.registry import TopicRegistry

    real = TopicRegistry._init
    left = [3]

    def init(self: TopicRegistry, *given: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Cut
        real(self, *given)  # type: ignore[arg-type]

    for step in range(8):
        left[0] = step
        with monkeypatch.context() as patched:
            patched.setattr(TopicRegistry, "_init", init)
            with suppress(Cut):
                lake.restore("orders")
    lake.restore("orders")
    assert values(lake, "orders") == ARCHIVED
    (first,) = send(lake, "orders", 1)
    assert first > 44


def test_a_call_that_was_sent_before_the_loss_is_not_appended_again(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    """FLUSHALL is no new run of the server, which would show by its id."""
    from lakelog.codec import ProducedBatch, encode
    from lakelog.values.config import Compression, EntryFormat
    from lakelog.values.record import produced_batch

    rows = produced_batch([(5, b"k", b"once", [])])
    entries = encode(rows, EntryFormat.FIELDS, Compression.NONE)
    topic = lake.topics.get("orders")
    batch = ProducedBatch(entries, 12345, 0, 0, 0)
    tp = TopicPartition("orders", 1)
    lake.hot.append(tp, topic.topic_id, batch)
    lake.archive()
    run_id = redis_client.info("server")["run_id"]
    redis_client.flushall()
    lake.restore()
    with pytest.raises(UnknownProducerError):
        lake.hot.append(tp, topic.topic_id, batch, sent_under=run_id)
    assert lake.log("orders").read(1).to_arrow().column("value").to_pylist() == [b"once"]


def test_two_lost_keyspaces_of_one_name_are_not_guessed(
    lake: Lakelog, tmp_path: Path, make_redis: Callable[..., RedisServer]
) -> None:
    with open_log(make_redis().url, tmp_path) as other:
        with pytest.raises(TopicExistsError):
            other.topics.create("orders")
        with Lakelog.connect(other.place.source.url, engine="inline") as without_cold:
            topic = without_cold.topics.create("orders", 1, {"remote.storage.enable": True})
        send(other, "orders", 1)
        other.archive()
        assert other.topics.get("orders").topic_id == topic.topic_id
    with open_log(make_redis().url, tmp_path) as third:
        with pytest.raises(AmbiguousTopicError):
            third.restore("orders")
        with pytest.raises(RestoreFailedError, match=r"2 topics under .* named 'orders'") as caught:
            third.restore()
        assert [one.topic.name for one in caught.value.restored] == ["audit"]
    assert lake.place.cold is not None
    assert lake.place.cold.catalogue("other").lost(None) == ()


def test_the_commands_offer_it(
    lake: Lakelog,
    redis_client: redis.Redis,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    redis_client.flushall()
    where = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]

    def run(*command: str) -> tuple[int, str]:
        code = main([*where, *command])
        said = capsys.readouterr()
        return code, said.out + said.err

    code, said = run("topics", "list")
    assert code == 0
    assert "tables of those that Redis has lost (audit, orders): `lakelog restore`" in said
    for command in (
        ["consume", "orders"],
        ["status", "orders"],
        ["topics", "describe", "orders"],
        ["topics", "create", "orders"],
        ["archive", "orders"],
    ):
        code, said = run(*command)
        assert (code, "lakelog restore orders" in said) == (1, True), said
    for command in (["status"], ["doctor"]):
        code, said = run(*command)
        assert "lakelog restore" in said, said
        assert "audit, orders" in said
    code, said = run("--output", "json", "restore", "--dry-run")
    assert [row["topic"] for row in json.loads(said)["would_be_restored"]] == list(NAMES)
    code, said = run("restore", "orders")
    assert code == 0
    assert "not restored, since no table tells it: records that were not archived" in said
    code, said = run("--output", "json", "restore")
    found = json.loads(said)
    assert {row["topic"] for row in found["restored"]} == {"audit"}
    code, said = run("restore")
    assert (code, said.strip()) == (0, "no topic was lost")
    assert values(lake, "orders") == ARCHIVED
    code, said = run("status", "orders")
    assert "orders-0: offsets 40..67,108,863 were skipped after Redis had lost the part" in said
    assert "Records that are lost: all that were not archived then" in said
    assert "last second" not in said

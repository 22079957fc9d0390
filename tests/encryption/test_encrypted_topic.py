"""An encrypted topic over both tiers: nothing lies in the clear, and all readers get all values."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis

from lakelog import Lakelog, TopicPartition
from lakelog.archive.archiver import Archiver
from lakelog.base.failpoints import armed
from lakelog.codec import ProducedBatch, encode
from lakelog.codec.encryption.sealed_values import MAGIC
from lakelog.errors import (
    ApplyFailedError,
    ContradictionError,
    DecryptionError,
    EncryptionKeyError,
    InvalidArgumentError,
    InvalidConfigError,
    MissingExtraError,
)
from lakelog.place.cold_mirror import ColdMirror
from lakelog.values.config import DATA_KEYS, ENCRYPTION_KEY, Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic

TP = TopicPartition("orders", 0)
DEFAULT_KEY = "lakelog.log.encryption.key"
KEY, OTHER = "11" * 32, "22" * 32
SECRET = b"nobody-reads-this-%d"
ON: dict[str, Any] = {
    ENCRYPTION_KEY: "env:LAKE_KEY",
    "local.retention.ms": 0,
    "retention.ms": -1,
    "internal.segment.bytes": 20_000,
    "compression.type": "uncompressed",  # so that a search of the stored bytes sees all
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_KEY", KEY)


def send(lake: Lakelog, first: int, count: int, topic: str = "orders") -> None:
    with lake.producer() as producer:
        for number in range(first, first + count):
            producer.send(topic, SECRET % number, key=b"k%d" % (number % 7))


def send_batch(lake: Lakelog, first: int, count: int, topic: str = "orders") -> None:
    rows = [(b"k%d" % (number % 7), SECRET % number) for number in range(first, first + count)]
    with lake.producer() as producer:
        producer.send_batch(topic, rows)


def values(lake: Lakelog, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in lake.log(topic).read(0).records()]


def stored_bytes(redis_url: str, root: Path) -> Iterator[bytes]:
    """All that Redis and the files hold, decompressed where they are compressed."""
    server = redis.Redis.from_url(redis_url)
    for name in server.scan_iter():
        match server.type(name):
            case b"stream":
                for _, fields in server.xrange(name):
                    yield from fields
                    yield from fields.values()
            case b"hash":
                yield from server.hgetall(name).values()
            case b"string":
                yield server.get(name) or b""
    for path in root.rglob("*"):
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            for column in pq.read_table(path).columns:
                yield b" ".join(str(one).encode() for one in column.to_pylist())
        elif path.is_file():
            yield path.read_bytes()


def test_what_is_appended_lies_nowhere_in_the_clear(
    lake: Lakelog, redis_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    lake.topics.create("orders", 1, ON)
    send(lake, 0, 30)
    send_batch(lake, 30, 70)
    lake.archive("orders")
    send(lake, 100, 5)
    send_batch(lake, 105, 45)
    with lake.producer() as producer:
        producer.send("orders", None, key=b"k")
        producer.send("orders", b"", key=b"k")
    assert values(lake) == [*(SECRET % number for number in range(150)), None, b""]
    held = list(stored_bytes(redis_url, tmp_path))
    assert held
    for one in (*held, caplog.text.encode()):
        assert b"nobody-reads" not in one
        assert KEY.encode() not in one
        assert bytes.fromhex(KEY) not in one
    assert any(MAGIC in one for one in held)
    assert any(b"k3" in one for one in held)


def test_a_rotated_key_encrypts_what_comes_and_the_old_one_stays(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, ON)
    reader = lake.log("orders")  # which knows the topic as it is now
    send(lake, 0, 20)
    lake.archive("orders")
    topic = lake.topics.rotate_key("orders")
    assert topic.config[DATA_KEYS].current == 2
    send(lake, 20, 20)
    expected = [SECRET % number for number in range(40)]
    assert [record.value for record in reader.read(0).records()] == expected
    lake.archive("orders")
    assert values(lake) == expected


def test_keys_wrapped_anew_read_all_and_the_old_key_may_go(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake.topics.create("orders", 1, ON)
    send(lake, 0, 20)
    path = tmp_path / "key"
    path.write_text(f"{OTHER}\n")
    topic = lake.topics.rotate_key("orders", wrap_with=f"file:{path}")
    assert topic.config.text(ENCRYPTION_KEY) == f"file:{path}"
    monkeypatch.delenv("LAKE_KEY")
    send(lake, 20, 20)
    assert values(lake) == [SECRET % number for number in range(40)]


def test_without_its_key_a_topic_takes_and_gives_nothing_and_says_why(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.topics.create("orders", 1, ON)
    send(lake, 0, 3)
    lake.topics.rotate_key("orders")  # so that no process has unwrapped these before
    monkeypatch.delenv("LAKE_KEY")
    with lake.producer() as producer, pytest.raises(EncryptionKeyError) as refused:
        producer.send("orders", b"x")
    assert refused.value.reference == "env:LAKE_KEY"
    assert "LAKE_KEY is not set in this process" in str(refused.value)
    with pytest.raises(EncryptionKeyError, match="'env:LAKE_KEY'"):
        values(lake)
    with pytest.raises(EncryptionKeyError):
        lake.topics.create("others", 1, ON)
    with pytest.raises(EncryptionKeyError):
        lake.topics.rotate_key("orders")
    # What needs no value needs no key.
    (report,) = lake.archive("orders")
    assert report.records == 3
    lake.cleanup()
    assert not lake.check().findings
    log = lake.log("orders")
    assert log.lag(0, 1).records.records == 2
    assert log.seek(0, "max-timestamp") is not None
    assert lake.status().failures == ()
    monkeypatch.setenv("LAKE_KEY", OTHER)
    with pytest.raises(EncryptionKeyError, match="is not the one that wrapped data key 1"):
        values(lake)
    monkeypatch.setenv("LAKE_KEY", "a pass phrase")
    with pytest.raises(EncryptionKeyError, match="is no key") as caught:
        values(lake)
    assert "pass phrase" not in str(caught.value)


def test_a_value_that_was_changed_is_an_error_that_names_it(lake: Lakelog, redis_url: str) -> None:
    lake.topics.create("orders", 1, {**ON, "lakelog.entry.format": "fields"})
    lake.topics.create("others", 1, ON)
    send(lake, 0, 3)
    stored = lake.log("orders", stored_values=True)
    sealed = [record.value for record in stored.read(0).records()]
    assert all(one is not None and one.startswith(MAGIC) for one in sealed)
    with lake.producer() as producer:
        producer.send("orders", sealed[0], key=b"k0")  # its own: as it is
        producer.send("others", sealed[1], key=b"k1")  # another's: encrypted as any bytes
    assert values(lake) == [SECRET % 0, SECRET % 1, SECRET % 2, SECRET % 0]
    assert values(lake, "others") == [sealed[1]]
    lake.topics.alter("orders", {ENCRYPTION_KEY: None})
    with lake.producer() as producer:
        producer.send("orders", sealed[0], key=b"another")
    with pytest.raises(DecryptionError) as caught:
        values(lake)
    assert (caught.value.topic_partition, caught.value.offset) == (("orders", 0), 4)
    assert "the stored value of orders-0 at offset 4" in str(caught.value)
    assert lake.log("orders").fetch(0, 0).next_offset == 4
    with lake.consumer() as consumer:
        consumer.assign([TP])
        consumer.seek(TP, 1)
        assert next(record.value for record in consumer.poll(60_000)[TP]) == SECRET % 1


def test_encryption_begins_and_ends_with_what_is_there_before_and_after(lake: Lakelog) -> None:
    plain = {name: value for name, value in ON.items() if name != ENCRYPTION_KEY}
    lake.topics.create("orders", 1, plain)
    reader = lake.log("orders")
    send(lake, 0, 5)
    lake.archive("orders")
    lake.topics.alter("orders", {ENCRYPTION_KEY: "env:LAKE_KEY"})
    send(lake, 5, 5)
    expected = [SECRET % number for number in range(15)]
    assert [record.value for record in reader.read(0).records()] == expected[:10]
    lake.topics.alter("orders", {ENCRYPTION_KEY: None})
    send(lake, 10, 5)
    lake.archive("orders")
    assert [record.value for record in reader.read(0).records()] == expected
    assert values(lake) == expected


def test_a_value_in_the_clear_is_refused_where_all_are_encrypted(lake: Lakelog) -> None:
    topic = lake.topics.create("orders", 1, ON)
    forged = encode(
        produced_batch([(1_700_000_000_000, b"k", b"forged", ())]),
        EntryFormat.FIELDS,
        Compression.NONE,
    )
    lake.hot.append(TP, topic.topic_id, ProducedBatch(forged, 7, 0, 0, 0))
    with pytest.raises(DecryptionError, match="orders-0 at offset 0 is not encrypted, and all"):
        values(lake)
    with lake.consumer(stored_values=True) as consumer:
        consumer.assign([TP])
        consumer.seek_to_beginning(TP)
        found = consumer.poll(60_000)
    assert [record.value for record in found[TP]] == [b"forged"]


def test_what_contradicts_encryption_is_refused(lake: Lakelog) -> None:
    with pytest.raises(InvalidConfigError, match="in the clear"):
        lake.topics.create("orders", 1, {**ON, "lakelog.value.columns": "a int"})
    with pytest.raises(InvalidConfigError) as caught:
        lake.topics.create("orders", 1, {ENCRYPTION_KEY: KEY})
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.fields)
    topic = lake.topics.create("orders", 1, ON)
    changes: list[dict[str, Any]] = [
        {"lakelog.value.columns": "a int"},
        {ENCRYPTION_KEY: "env:OTHER"},
        {DATA_KEYS: topic.config.text(DATA_KEYS)},
        {DATA_KEYS: None},
    ]
    for change in changes:
        with pytest.raises(InvalidConfigError):
            lake.topics.alter("orders", change)
    assert lake.topics.get("orders").config == topic.config
    lake.topics.create("plain", 1)
    with pytest.raises(InvalidConfigError, match="are not encrypted, so there is no key"):
        lake.topics.rotate_key("plain")


def test_every_reader_gets_the_values(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, ON)
    send(lake, 0, 30)
    lake.archive("orders")
    send(lake, 30, 10)
    expected = [SECRET % number for number in range(40)]
    log = lake.log("orders")
    got: list[bytes | None] = []
    with lake.consumer("orders", group_id="g", auto_offset_reset="earliest") as consumer:
        while len(got) < 40:
            for records in consumer.poll(1000).values():
                got += [record.value for record in records]
    assert got == expected
    for is_stored in (False, True):
        shared = lake.share_consumer(
            "orders",
            group_id=f"queue {is_stored}",
            share_auto_offset_reset="earliest",
            stored_values=is_stored,
        )
        queued: list[bytes | None] = []
        with shared:
            while len(queued) < 40:
                queued += [one.value for some in shared.poll(1000).values() for one in some]
        assert (sorted(queued) == sorted(expected)) is not is_stored
        assert all(one is not None and one.startswith(MAGIC) for one in queued) is is_stored
    assert sorted(log.sample(40)["value"].to_pylist()) == sorted(expected)
    found = log.search('value = "nobody-reads-this-7"').to_arrow()
    assert found["value"].to_pylist() == [SECRET % 7]
    found = log.search('key = "k3"').to_arrow()
    assert found["value"].to_pylist() == [SECRET % number for number in range(3, 40, 7)]
    rows = lake.sql("select value from orders where value like '%-39'").read_all()
    assert rows["value"].to_pylist() == ["nobody-reads-this-39"]
    cold = lake.archived.log("orders")
    assert [record.value for record in cold.read(0).records()] == expected[:30]


# -- what else happens to a topic --------------------------------------------------------------


def test_a_keyspaces_default_encrypts_all_its_topics_and_those_that_are_there(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.topics.create("orders", 1)
    send(lake, 0, 3)
    monkeypatch.delenv("LAKE_KEY")
    with pytest.raises(EncryptionKeyError):
        lake.topics.set_defaults({DEFAULT_KEY: "env:LAKE_KEY"})
    assert lake.topics.defaults() == {}
    with pytest.raises(InvalidConfigError) as caught:
        lake.topics.set_defaults({DEFAULT_KEY: KEY})
    assert KEY not in str(caught.value)
    monkeypatch.setenv("LAKE_KEY", KEY)

    lake.topics.set_defaults({DEFAULT_KEY: "env:LAKE_KEY"})

    lake.topics.create("more", 1)
    send(lake, 3, 3)
    send(lake, 3, 3, "more")
    stored = lake.log("orders", stored_values=True).read(0).to_arrow()["value"].to_pylist()
    assert [value.startswith(MAGIC) for value in stored] == [False] * 3 + [True] * 3
    assert values(lake) == [SECRET % number for number in range(6)]
    assert not lake.topics.get("more").config[DATA_KEYS].clear

    lake.topics.set_defaults({DEFAULT_KEY: None})

    send(lake, 6, 3, "more")
    assert lake.topics.get("more").config[DATA_KEYS].clear
    assert values(lake, "more") == [SECRET % number for number in range(3, 9)]


def test_redis_is_lost_and_the_topic_comes_back_with_its_keys(
    lake: Lakelog, redis_url: str
) -> None:
    lake.topics.create("orders", 1, ON)
    send(lake, 0, 20)
    config = lake.topics.rotate_key("orders").config
    send(lake, 20, 20)
    lake.archive("orders")
    redis.Redis.from_url(redis_url).flushall()
    lake.restore()
    assert lake.topics.get("orders").config == config
    send(lake, 40, 5)
    assert values(lake) == [SECRET % number for number in range(45)]


@pytest.mark.parametrize("is_plain", [True, False], ids=["its first key", "a rotated key"])
def test_a_key_that_comes_while_an_archiver_begins_is_in_the_table_before_its_records(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    created = {name: value for name, value in ON.items() if not is_plain or name != ENCRYPTION_KEY}
    topic = lake.topics.create("orders", 1, created)
    send(lake, 0, 5)
    lake.archive("orders")
    left, held = [1], []

    def current_topic() -> Topic:
        """As it was: a key comes, and records under it, before the archiver looks at the log."""
        seen = lake.topics.renewed(topic)
        if left:
            left.pop()
            with monkeypatch.context() as away:  # the table is told by the archiver alone
                away.setattr(ColdMirror, "settled", lambda *_: None)
                if is_plain:
                    lake.topics.alter("orders", {ENCRYPTION_KEY: ON[ENCRYPTION_KEY]})
                else:
                    lake.topics.rotate_key("orders")
            send(lake, 5, 5)
        return seen

    def committed() -> None:
        mirrored = table.mirrored()
        assert mirrored is not None
        held.append((table.snapshot().archived_end(0), mirrored.config[DATA_KEYS]))

    table = lake._opened(topic)
    with armed("archive.after_commit", committed):
        Archiver(topic, lake.hot, table, current_topic=current_topic).run_once()
    assert held
    for archived_end, data_keys in held:
        assert archived_end == 5 or data_keys.current == (1 if is_plain else 2)
    assert held[-1][0] == 10
    assert values(lake) == [SECRET % number for number in range(10)]


@pytest.mark.parametrize("is_plain", [True, False], ids=["its first key", "a rotated key"])
def test_a_key_that_redis_loses_comes_back_from_the_table_and_is_not_replaced(
    redis_url: str, tmp_path: Path, redis_client: redis.Redis, is_plain: bool
) -> None:
    def opened() -> Lakelog:
        return Lakelog.connect(redis_url, tmp_path / "cold", engine="inline")

    created = {name: value for name, value in ON.items() if not is_plain or name != ENCRYPTION_KEY}
    with opened() as lake:
        lake.topics.create("orders", 1, created)
        send(lake, 0, 5)
        topics = "lakelog:topics"
        before = redis_client.dump(topics)
        if is_plain:
            lake.topics.alter("orders", {ENCRYPTION_KEY: ON[ENCRYPTION_KEY]})
        else:
            lake.topics.rotate_key("orders")
        send(lake, 5, 5)
        lake.archive("orders")
        lost = lake.topics.get("orders").config[DATA_KEYS]
    redis_client.restore(topics, 0, before, replace=True)
    with opened() as lake:
        send(lake, 10, 5)
        assert lake.archiver("orders").run_once().records == 5  # the table has more keys
        lake.topics.alter("orders", {"retention.ms": 10**12})
        send(lake, 15, 5)
        with pytest.raises(ContradictionError, match="lakelog topics rotate-key orders"):
            lake.archiver("orders").run_once()
        if is_plain:
            with pytest.raises(InvalidConfigError, match="--wrap-with env:OTHER"):
                lake.topics.alter("orders", {ENCRYPTION_KEY: "env:OTHER"})
            lake.topics.alter("orders", {ENCRYPTION_KEY: ON[ENCRYPTION_KEY]})
        else:
            lake.topics.rotate_key("orders")

        found = lake.topics.get("orders").config[DATA_KEYS]
        assert found.keeps(lost)
        assert found.current == lost.current + (not is_plain)
        assert lake.archiver("orders").run_once().records == 5
        assert values(lake) == [SECRET % number for number in range(20)]
        table = lake.log("orders").table
        mirrored = None if table is None else table.mirrored()
        assert mirrored is not None
        assert mirrored.config[DATA_KEYS] == found


def test_an_export_is_imported_with_the_bytes_it_has(
    lake: Lakelog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.topics.create("orders", 1, ON)
    send(lake, 0, 20)
    lake.archive("orders")
    send(lake, 20, 20)
    monkeypatch.delenv("LAKE_KEY")  # neither takes it
    lake.export(tmp_path / "orders.tar", "orders")
    assert SECRET % 3 not in (tmp_path / "orders.tar").read_bytes()
    lake.import_topics(tmp_path / "orders.tar", name="copy")
    for config in ({DATA_KEYS: None}, {ENCRYPTION_KEY: "env:OTHER"}):
        with pytest.raises(InvalidConfigError):
            lake.import_topics(tmp_path / "orders.tar", name="more", config=config)
    monkeypatch.setenv("LAKE_KEY", KEY)
    send(lake, 40, 5, "copy")
    assert values(lake, "copy") == [SECRET % number for number in range(45)]
    before, copied = (lake.log(name, stored_values=True) for name in ("orders", "copy"))
    held = before.read(0).to_arrow()
    assert copied.read(0).to_arrow()["value"].to_pylist()[:40] == held["value"].to_pylist()


def test_compaction_and_erasure_take_no_key(
    lake: Lakelog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0}
    lake.topics.create("orders", 1, {**ON, **compacted, "internal.segment.bytes": 4_000})
    for first in range(0, 200, 20):
        send(lake, first, 20)
        lake.archive("orders")
    lake.topics.rotate_key("orders")
    monkeypatch.delenv("LAKE_KEY")
    (report,) = lake.cleanup("orders")
    assert report.compacted[0].records_dropped > 100
    with pytest.raises(InvalidArgumentError, match="erasing decrypts none"):
        lake.erase("orders", where='value = "x"')
    erased = lake.erase("orders", "k3")
    assert erased.cold.partitions
    monkeypatch.setenv("LAKE_KEY", KEY)
    last = {record.key: record.value for record in lake.log("orders").read(0).records()}
    expected = {b"k%d" % (number % 7): SECRET % number for number in range(200)}
    assert {key: value for key, value in last.items() if value is not None} == {
        key: value for key, value in expected.items() if key != b"k3"
    }


def test_without_the_package_the_setting_says_what_to_install(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lakelog\[encryption\]'"):
        lake.topics.create("orders", 1, ON)
    assert lake.topics.list() == []


def test_keys_are_not_changed_where_nobody_can_look_at_a_table_by_name(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold keys that Redis has lost: a first key, or another one, would take their place."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with Lakelog.connect(redis_url, "main.logs", engine="inline") as lake:
        encrypted = lake.topics.create("orders", 1, ON)  # it is new, and so has no table
        plain = lake.topics.create("plain", 1)
        for name, change in (
            ("orders", lambda: lake.topics.rotate_key("orders")),
            ("plain", lambda: lake.topics.alter("plain", {ENCRYPTION_KEY: "env:LAKE_KEY"})),
        ):
            with pytest.raises(MissingExtraError) as refused:
                change()
            assert f"the settings of topic {name!r} were not changed" in str(refused.value)
            assert "its table may have data keys that Redis has lost" in str(refused.value)
            assert "pip install 'lakelog[spark]'" in str(refused.value)
        with pytest.raises(ApplyFailedError, match="Set the defaults again") as told:
            lake.topics.set_defaults({DEFAULT_KEY: "env:LAKE_KEY"})
        assert list(told.value.errors) == ["plain"]
        assert lake.topics.get("orders").config.overrides == encrypted.config.overrides
        assert lake.topics.get("plain").config.overrides == plain.config.overrides

"""Whatever stands in a key of lakelog's, each who reads it goes on or refuses it by name."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.archive.report import Trouble
from lakelog.codec import ProducedBatch, encode
from lakelog.errors import LakelogError
from lakelog.hot.hot_log import HotLog
from lakelog.hot.keys import DELETED_FIELDS, DELETED_MS_FIELDS, DELETING_FIELDS, Keys
from lakelog.hot.skip import BadEntry
from lakelog.operate.skip import noted
from lakelog.operate.status import status
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic

NOW_MS = 1_700_000_000_000

ODD = [
    b"",
    b"\xff\xfe",
    b"-1",
    b"0",
    b"1.5",
    b"nan",
    b"inf",
    b"1e400",
    b"9" * 400,
    b"9" * 5_000,
    b"9223372036854775808",
    b" ",
    b"a b c d e f g",
    b"1 2",
    b"0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    b"5-",
    b"9-3",
    b"a-b,c",
    b"0-5,3-8",
    b"null",
    b"[]",
    b"5",
    b"{}",
    b'{"until_ms":"soon"}',
    b'{"until_ms":99999999999999,"troubles":5}',
    b'{"until_ms":99999999999999,"troubles":[5]}',
    b'{"until_ms":99999999999999,"troubles":[{"topic":null}]}',
    b'{"until_ms":1e400}',
    b"[" * 5_000,
    b"00000000-0000-0000-0000-000000000000",
]
values = st.one_of(st.sampled_from(ODD), st.binary(max_size=12))


@dataclass
class Log:
    """One topic with all that lakelog keeps of it, which each example damages anew."""

    client: redis.Redis = field(repr=False)
    hot: HotLog
    topic: Topic = field(repr=False)
    kept: dict[bytes, bytes] = field(repr=False)
    numbers: Iterator[int] = field(repr=False)

    def reset(self) -> None:
        with self.client.pipeline() as many:
            many.flushall()
            for key, dumped in self.kept.items():
                many.restore(key, 0, dumped)
            many.execute()

    def batch(self) -> ProducedBatch:
        entries = encode(
            produced_batch([(NOW_MS, b"k", b"v", ())]), EntryFormat.FIELDS, Compression.NONE
        )
        return ProducedBatch(entries, next(self.numbers), 0, 0, 0)


def fill(hot: HotLog, topic: Topic) -> None:
    for sequence in range(6):
        records = produced_batch([(NOW_MS + sequence, b"k", b"v" * 30, ())] * 4)
        entries = encode(records, EntryFormat.ARROW, Compression.NONE)
        call = ProducedBatch(entries, 7, 0, 4 * sequence, 4 * sequence + 3)
        hot.append(topic.partition(0), topic.topic_id, call)
    skip(hot, topic, "11-4")
    hot.trim(topic.partition(0), 4, archived_end=4)
    hot.beats().leave("here", {"troubles": []}, 10**12)


def skip(hot: HotLog, topic: Topic, entry_id: str) -> None:
    """Skips an entry, though it is sound."""
    skips = hot.skips(topic.partition(0), topic.topic_id)
    look = skips._look(entry_id)
    note = b'{"gap":[8,12],"reason":"to be there","who":"me","moved_at_ms":5}'
    skips.skip(BadEntry(entry_id, look.gap, "", look.fields), note)


@pytest.fixture(params=[True, False], ids=["tiered", "untiered"])
def log(request: pytest.FixtureRequest, redis_url: str) -> Iterator[Log]:
    hot = HotLog.connect(redis_url)
    config = {"retention.ms": -1, "index.interval.bytes": 1, "internal.segment.bytes": 2000}
    tiered = {"remote.storage.enable": request.param}
    topic = hot.topics().create("orders", 1, config | tiered)
    fill(hot, topic)
    hot.topics().create("gone", 1, config | tiered)
    hot.topics().delete("gone")
    client = redis.Redis.from_url(redis_url)
    kept = {key: client.dump(key) for key in client.scan_iter()}
    yield Log(client, hot, topic, kept, itertools.count(100))
    hot.close()
    client.close()


def every_page(log: Log) -> list[Any]:
    inspection = log.hot.inspection()
    tp, topic_id = log.topic.partition(0), log.topic.topic_id
    return [inspection.look(tp, topic_id), *inspection.pages(tp, topic_id)]


USES: dict[str, Callable[[Log], Any]] = {
    "offsets": lambda log: log.hot.offsets([log.topic.partition(0)]),
    "read": lambda log: list(log.hot.read(log.topic.partition(0), 4)),
    "a time": lambda log: log.hot.offset_for_timestamp(log.topic.partition(0), NOW_MS + 3),
    "the largest time": lambda log: log.hot.max_timestamp(log.topic.partition(0)),
    "look": lambda log: [one.look([log.topic.partition(0)]) for one in log.hot.server_looks()],
    "beats": lambda log: log.hot.beats().alive(),
    "a beat": lambda log: log.hot.beats().leave("me", {}, 1000),
    "status": lambda log: status(log.hot, [log.topic], lambda _: None, redis=log.hot),
    "topics": lambda log: [log.hot.topics().list(), log.hot.topics().version()],
    "one topic": lambda log: log.hot.topics().get("orders"),
    "defaults": lambda log: log.hot.topics().defaults(),
    "skipped": lambda log: noted(log.hot, log.topic.partition(0), log.topic.topic_id),
    "inspection": every_page,
    "append": lambda log: log.hot.append(log.topic.partition(0), log.topic.topic_id, log.batch()),
    "trim": lambda log: log.hot.trim(log.topic.partition(0), 8, archived_end=8, planned_at_ms=9),
    "retain": lambda log: log.hot.retain(log.topic.partition(0)),
    "roll": lambda log: log.hot.roll(log.topic.partition(0), 24, log.topic.topic_id),
    "skip": lambda log: skip(log.hot, log.topic, "15-4"),
    "recover": lambda log: log.hot.recover_all({log.topic.partition(0): 30}),
    "pause": lambda log: log.hot.pause([log.topic.partition(0)]),
    "resume": lambda log: log.hot.resume([log.topic.partition(0)]),
    "alter": lambda log: log.hot.topics().alter("orders", {"retention.ms": "7"}),
    "set defaults": lambda log: log.hot.topics().set_defaults({"log.retention.hours": "7"}),
    "repair": lambda log: log.hot.topics().repair(log.topic),
    "deleted": lambda log: log.hot.topics().deleted(),
    "create": lambda log: log.hot.topics().create("made"),
    "create again": lambda log: log.hot.topics().create("gone"),
    "delete": lambda log: log.hot.topics().delete("orders"),
}


def damage(log: Log, draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """One thing in one key is another; what it was."""
    client = log.client
    key = draw(st.sampled_from(sorted(log.kept)))
    kind = client.type(key)
    how = draw(st.sampled_from(["value", "value", "value", "gone", "more", "type"]))
    value = draw(values)
    if how == "type":
        client.delete(key)
        if draw(st.booleans()):
            client.set(key, value)
        else:
            client.rpush(key, value)
    elif kind == b"hash":
        field = draw(st.sampled_from(sorted(client.hkeys(key))))
        if how == "gone":
            client.hdel(key, field)
        else:
            another = draw(st.sampled_from(PREFIXES)) + draw(values)
            client.hset(key, another if how == "more" else field, value)
    elif kind == b"zset":
        member = draw(st.sampled_from(client.zrange(key, 0, -1)))
        if how != "more":
            client.zrem(key, member)
        if how != "gone":
            client.zadd(key, {value: draw(st.sampled_from([-1, 0, 5.5, 1e300, float("inf")]))})
    elif kind == b"stream":
        entries = client.xrange(key)
        at = draw(st.integers(0, len(entries) - 1))
        if how == "gone":
            client.xdel(key, entries[at][0])
        elif how == "more":
            last = int(client.xinfo_stream(key)["last-generated-id"].split(b"-")[0])
            above = draw(st.integers(min(last + 1, 2**64 - 1), 2**64 - 1))
            with contextlib.suppress(redis.ResponseError):  # there is no higher id any more
                client.xadd(key, {value: draw(values)}, id=f"{above}-1")
        else:
            field = draw(st.sampled_from(sorted(entries[at][1])))
            client.delete(key)
            for n, (entry_id, fields) in enumerate(entries):
                client.xadd(key, {**fields, field: value} if n == at else fields, id=entry_id)
    return f"{how} {key!r} {value[:40]!r}"


# A stop goes with a start; nothing is paused here.
SOUND = sorted(USES.keys() - {"resume"})

#: What begins the fields of a registry that are no topics.
PREFIXES = [b"", *(name.encode() for name in (DELETED_FIELDS, DELETED_MS_FIELDS, DELETING_FIELDS))]


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_used(log, name):
    log.reset()
    USES[name](log)


def escaped(log: Log) -> list[tuple[str, str]]:
    """Uses that end in what is no error of ours."""
    found = []
    for name in random.Random(next(log.numbers)).sample(sorted(USES), len(USES)):
        try:
            USES[name](log)
        except LakelogError:
            pass
        except Exception as error:
            found.append((name, repr(error)))
    return found


@settings(max_examples=30)
@given(data=st.data())
def test_a_key_that_somebody_else_wrote_to_ends_in_our_errors(log, data):
    log.reset()
    note = damage(log, data.draw)
    assert escaped(log) == [], note


@pytest.mark.slow
@settings(max_examples=500)
@given(data=st.data())
def test_several_keys_that_somebody_else_wrote_to_end_in_our_errors(log, data):
    log.reset()
    notes = [damage(log, data.draw) for _ in range(data.draw(st.integers(1, 3)))]
    assert escaped(log) == [], notes


def contents(log: Log) -> dict[bytes, object]:
    kinds = {key: log.client.type(key) for key in log.client.scan_iter()}
    return {
        key: log.client.hgetall(key) if kind == b"hash" else log.client.dump(key)
        for key, kind in kinds.items()
    }


@given(data=st.data(), name=st.sampled_from(["append", "trim", "retain", "skip", "recover"]))
def test_what_a_script_refuses_it_leaves_as_it_was(log, data, name):
    """An error within a script would leave what it had written by then."""
    log.reset()
    note = damage(log, data.draw)
    before = contents(log)
    refused = None
    try:
        USES[name](log)
    except LakelogError as error:
        refused = error
    assert refused is None or contents(log) == before, (note, refused)


@pytest.mark.parametrize("odd", [b"x", b'{"troubles":5,"until_ms":4503599627370495}'])
def test_a_strange_beat_hides_no_archiver(log, odd):
    log.reset()
    trouble = Trouble("orders", 5, "no room", 1, None)
    log.hot.beats().leave("other", {"troubles": [trouble.to_json(), 5]}, 10_000)
    log.client.hset("lakelog:archivers", "odd", odd)
    assert status(log.hot, [], lambda _: None, redis=log.hot).troubles == (trouble,)


def test_a_damaged_partition_keeps_no_other_from_being_seen(redis_url, redis_client):
    hot = HotLog.connect(redis_url)
    topic = hot.topics().create("orders", 3)
    keys = [Keys(hot.keyspace).partition(topic.partition(n)) for n in range(3)]
    redis_client.hset(keys[0].state, "log_end", "many")
    redis_client.set(keys[1].state, "nothing")
    (server,) = hot.server_looks()
    seen = server.look(topic.topic_partitions()).partitions
    assert [seen[topic.partition(n)] is None for n in range(3)] == [True, True, False]
    hot.close()

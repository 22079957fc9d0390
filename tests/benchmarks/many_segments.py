"""How long Redis is kept from everybody else, however many segments and producers there are.

A partition of 100,000 closed segments, put into Redis by hand, and a million producers that it
remembers. How long a script of each question takes, as Redis's slow log tells: an append of one
record, where the partition ends, all its segments, where a time is with and without a time index,
a look for damage, trimming half of it, and retention of half of one like it whose topic is not
tiered; and of a recovery. Of the scripts that one question takes, whose parts are alike, it is the
median: others on the machine make some of them seem long. Beside them, in the same round, one
script that takes all segments through Lua.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial

import redis

from lakelog.codec import ProducedBatch, encode
from lakelog.errors import CorruptRecordError
from lakelog.hot import HotLog
from lakelog.hot.keys import Keys, PartitionKeys
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic_partition import TopicPartition

from .bench import Bench
from .measures import OURS, SECONDS, Row

SEGMENTS, PRODUCERS = 100_000, 1_000_000
RECORDS = 10  # of a segment
EPOCH_MS = 1_700_000_000_000
AT_ONCE = 5_000
ALL = "one script over all segments"
APPEND, RECOVERY = "an append of one record", "a recovery with its producers"
SCRIPT = """
local bytes = 0
for _, text in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  bytes = bytes + string.match(text, '%S+ %S+ (%S+)')
end
return bytes
"""


def rows(bench: Bench) -> Iterator[Row]:
    segments = bench.scaled(SEGMENTS, 200)
    slow = {"slowlog-log-slower-than": 0, "slowlog-max-len": 10_000, "appendonly": "no"}
    with (
        bench.redis(slow) as server,
        closing(HotLog.connect(server.url)) as hot,
        server.client() as client,
    ):
        of_round = Round(hot, client, segments, bench.scaled(PRODUCERS, 200))
        found = bench.repeated(of_round, bench.few)
        for name, samples in found.items():
            if name != ALL:
                sides = {OURS: samples, ALL: found[ALL]}
                yield Row(f"a script in Redis: {name}", SECONDS, sides)


class Round:
    """One partition, made anew and asked everything."""

    def __init__(self, hot: HotLog, client: redis.Redis, segments: int, producers: int) -> None:
        self._hot, self._client = hot, client
        self._segments, self._producers = segments, producers
        self._end = segments * RECORDS

    def __call__(self) -> Mapping[str, float]:
        """Seconds by what was asked."""
        hot, client, end = self._hot, self._client, self._end
        client.flushall()
        topic = hot.topics().create("segments", 1)
        tp = topic.partition(0)
        keys = self._fill(tp, self._producers)
        last_ms = EPOCH_MS + self._segments - 2
        (entry,) = encode(
            produced_batch([(last_ms, None, b"v", [])]), EntryFormat.FIELDS, Compression.NONE
        )
        sequence = iter(range(10))
        call = partial(ProducedBatch, (entry,), 1, 0)

        def append() -> None:
            n = next(sequence)
            hot.append(tp, topic.topic_id, call(n, n))

        def seek() -> None:
            with suppress(CorruptRecordError):  # the index leads to a segment without entries
                hot.offset_for_timestamp(tp, last_ms)

        append()  # the first one after a start loads the script
        asks: dict[str, Callable[[], object]] = {
            APPEND: append,
            ALL: lambda: client.eval(SCRIPT, 1, keys.segments),
            "where a partition ends": lambda: hot.offsets([tp]),
            "all its segments": lambda: hot.segments([tp]),
            "where a time is": seek,
            "a look for damage": lambda: hot.inspection().look(tp, topic.topic_id),
        }
        found: dict[str, float] = {}
        for what, ask in asks.items():
            self._scripts(found, what, ask)
        client.delete(keys.times)
        late_ms = last_ms + 10**6
        self._scripts(
            found,
            "where a time is, its index gone",
            lambda: hot.offset_for_timestamp(tp, late_ms),
        )
        self._scripts(
            found, "trimming half of it", lambda: hot.trim(tp, end // 2, topic_id=topic.topic_id)
        )
        client.hset(keys.state, "run_id", "before")
        self._scripts(found, RECOVERY, lambda: hot.recover_all({tp: end + 10}))
        settings = {"remote.storage.enable": False, "retention.ms": -1}
        half = {"retention.bytes": self._segments * 1000 // 2}
        untiered = hot.topics().create("untiered", 1, {**settings, **half}).partition(0)
        self._fill(untiered, producers=0)
        what = "retention of half of it, untiered"
        self._scripts(found, what, lambda: hot.retain(untiered))
        return found

    def _scripts(self, found: dict[str, float], what: str, ask: Callable[[], object]) -> None:
        """Adds the median seconds of its scripts."""
        self._client.slowlog_reset()
        ask()
        told = self._client.slowlog_get(10_000)
        took = [one["duration"] / 1e6 for one in told if one["command"].startswith(b"EVAL")]
        found[what] = statistics.median(took)

    def _fill(self, topic_partition: TopicPartition, producers: int) -> PartitionKeys:
        client, end = self._client, self._end
        keys = Keys(self._hot.keyspace).partition(topic_partition)
        for first in range(0, self._segments, AT_ONCE):
            numbers = range(first, min(self._segments, first + AT_ONCE))
            bases = {n: n * RECORDS for n in numbers}
            texts = {
                f"{base} {base + RECORDS} 1000 {EPOCH_MS + n} {EPOCH_MS + n} {EPOCH_MS} 0": base
                for n, base in bases.items()
            }
            client.zadd(keys.segments, texts)
            client.zadd(keys.times, {base + RECORDS - 1: EPOCH_MS + n for n, base in bases.items()})
        for first in range(0, producers, AT_ONCE):
            numbers = range(first, min(producers, first + AT_ONCE))
            call = f"0 {EPOCH_MS}|0 99 5 -1"
            client.hset(keys.producers, mapping={str(10**15 + n): call for n in numbers})
        client.hset(
            keys.state,
            mapping={
                "log_end": end,
                "closed_bytes": self._segments * 1000,
                "segment": f"{end} 0 -1 -1 {EPOCH_MS} {EPOCH_MS}",
                "index": f"0 {EPOCH_MS + self._segments} {EPOCH_MS + self._segments}",
                "producer_count": producers,
            },
        )
        return keys

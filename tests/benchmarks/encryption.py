"""What encrypted values cost: CPU time of this process for a record, Redis not counted.

For each size, a table of records is encrypted and decrypted alone, and sent (`send_batch`; a tenth
of them by `send`) and read whole (`log.read`) in a topic whose values are encrypted and in one
whose values are not.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from lakelog import Lakelog
from lakelog.codec.encryption.of_topic import opening
from lakelog.values.config import ENCRYPTION_KEY, KIB

from .bench import Bench, Side
from .made_records import size
from .measures import OURS, SECONDS, Row

SIZES = {100: 200_000, KIB: 50_000}
CLEAR = "in the clear"
WAYS = ("`send_batch`", "`send`", "`log.read`")
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}
KEY = "LAKELOG_BENCHMARK_KEY"


def rows(bench: Bench) -> Iterator[Row]:
    os.environ[KEY] = secrets.token_hex(32)
    with (
        bench.redis({"appendfsync": "no", "save": ""}) as server,
        Lakelog.connect(server.url, engine="inline") as lake,
    ):
        for value_bytes, records in SIZES.items():
            made = table(value_bytes, bench.scaled(records, 20))
            of = f"a record of {size(value_bytes)}"
            alone = bench.repeated(lambda made=made: cipher_alone(lake, made))
            for what, samples in alone.items():
                yield Row(f"{what}ing {of} alone, CPU", SECONDS, {OURS: samples})
            found: dict[tuple[str, str], list[float]] = {}
            sides = {side: measuring(lake, side, made, found) for side in (OURS, CLEAR)}
            bench.interleaved(sides)
            for way in WAYS:
                by_side = {side: tuple(found[side, way][1:]) for side in sides}
                yield Row(f"{way} of {of}, encrypted, CPU", SECONDS, by_side)
    del os.environ[KEY]


def table(value_bytes: int, records: int) -> pa.Table:
    chance = random.Random(1)
    keys = pa.array([b"%08d" % (n % 1000) for n in range(records)], pa.binary())
    values = pa.array([chance.randbytes(value_bytes) for _ in range(records)], pa.binary())
    return pa.table({"key": keys, "value": values})


def settings(side: str) -> Mapping[str, object]:
    return {**UNTIERED, **({ENCRYPTION_KEY: f"env:{KEY}"} if side == OURS else {})}


def cpu_s(work: Callable[[], object], records: int) -> float:
    """Seconds on the CPU for each of the records."""
    began_s = time.process_time()
    work()
    return (time.process_time() - began_s) / records


def cipher_alone(lake: Lakelog, made: pa.Table) -> dict[str, float]:
    topic = lake.topics.create("alone", 1, settings(OURS))
    cipher = opening(topic)
    assert cipher is not None
    keys, values = (made[name].combine_chunks() for name in ("key", "value"))
    stored = cipher.seal(keys, values)
    found = {
        "encrypt": cpu_s(lambda: cipher.seal(keys, values), made.num_rows),
        "decrypt": cpu_s(lambda: cipher.open(keys, stored), made.num_rows),
    }
    lake.topics.delete(topic.name)
    lake.purge(topic.name)
    return found


def measuring(
    lake: Lakelog, side: str, made: pa.Table, found: dict[tuple[str, str], list[float]]
) -> Side:
    few = made.slice(0, max(20, made.num_rows // 10))
    pairs = list(zip(few["key"].to_pylist(), few["value"].to_pylist(), strict=True))

    def send_batch() -> None:
        with lake.producer() as producer:
            producer.send_batch("one", made)

    def send() -> None:
        with lake.producer() as producer:
            for key, value in pairs:
                producer.send("other", value, key=key)

    def read() -> None:
        lake.log("one").read(0).to_arrow()

    def run() -> None:
        for name in ("one", "other"):
            lake.topics.create(name, 1, settings(side))
        counts = (made.num_rows, len(pairs), made.num_rows)
        for way, work, records in zip(WAYS, (send_batch, send, read), counts, strict=True):
            found.setdefault((side, way), []).append(cpu_s(work, records))
        for name in ("one", "other"):
            lake.topics.delete(name)
            lake.purge(name)

    return run

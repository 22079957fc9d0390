"""What a search reads a second, and what reading record by record takes.

Two topics of four partitions hold the same ten million records, of a key that no other has and a
value of 100 bytes, all archived. One has Bloom filters in its files, the other has none. Nothing
that is looked for is there, so everything is to be gone through. Of the first million it is timed
how long `.records()` and `lakelog consume --output json` take. There are three rounds at most.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from lakelog import Lakelog, TopicLog

from .bench import Bench, rates
from .made_records import PARTITIONS, counted
from .measures import BYTES, OURS, RECORDS_PER_S, SECONDS, Goal, Row

RECORDS, FIRST = 10_000_000, 1_000_000
BATCH = 100_000
EPOCH_MS = 1_700_000_000_000
SCAN = "the text's scan"
TEXT_PER_S, KEYS_PER_S, FILTERS_TIMES = 1e6, 2e6, 50
RECORDS_S, JSON_S = 3.0, 4.0


def rows(bench: Bench) -> Iterator[Row]:
    total, first = bench.scaled(RECORDS, 1_000), bench.scaled(FIRST, 100)
    cold = str(bench.new_folder())
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url, cold, engine="inline") as lakelog,
    ):
        plain_bytes = fill(lakelog, "plain", total, filters=False)
        filtered_bytes = fill(lakelog, "filtered", total, filters=True)
        plain, filtered = lakelog.log("plain"), lakelog.log("filtered")
        found = bench.interleaved(
            {
                "text": lambda: search(plain, "nowhere"),
                "key": lambda: search(plain, 'key = "nobody"'),
                "filters": lambda: search(filtered, 'key = "nobody"'),
                "records": lambda: read(plain, first),
                "json": lambda: consume(server.url, cold, first),
            },
            bench.few,
        )
    of = f"of {counted(total)}, cold, nothing found"
    text, key = (rates({OURS: found[one]}, total) for one in ("text", "key"))
    yield Row(f"a search {of}: a text, all is decoded", RECORDS_PER_S, text, (Goal(TEXT_PER_S),))
    yield Row(f"a search {of}: a key, no filters", RECORDS_PER_S, key, (Goal(KEYS_PER_S),))
    filters = {OURS: found["filters"], SCAN: found["text"]}
    goals = (Goal(FILTERS_TIMES, SCAN),)
    yield Row(f"a search {of}: a key, with Bloom filters", SECONDS, filters, goals)
    sizes = {OURS: (float(filtered_bytes),), "without filters": (float(plain_bytes),)}
    yield Row(f"files of {counted(total)}, with Bloom filters", BYTES, sizes)
    of = f"the first {counted(first)}, cold"
    yield Row(f"`.records()` of {of}", SECONDS, {OURS: found["records"]}, (Goal(RECORDS_S),))
    yield Row(f"`consume --output json` of {of}", SECONDS, {OURS: found["json"]}, (Goal(JSON_S),))


def fill(lakelog: Lakelog, name: str, records: int, *, filters: bool) -> int:
    """Archives the records; gives the bytes of the files."""
    settings = {
        "retention.ms": -1,
        "local.retention.ms": 0,
        "lakelog.key.bloom.filter": filters,
    }
    lakelog.topics.create(name, PARTITIONS, settings)
    chance = np.random.default_rng(1)
    with lakelog.producer(compression_type="none") as producer:
        for start in range(0, records, BATCH):
            count = min(BATCH, records - start)
            table = pa.table(
                {
                    "key": pa.array([b"%016x" % one for one in chance.integers(0, 2**62, count)]),
                    "value": pa.array(made_values(chance, count)),
                    "timestamp_ms": pa.array(range(EPOCH_MS + start, EPOCH_MS + start + count)),
                }
            )
            producer.send_batch(name, table, partition=start // BATCH % PARTITIONS)
            if start // BATCH % 20 == 19:
                lakelog.archive(name)
    lakelog.archive(name)
    table = lakelog.log(name).table
    assert table is not None
    return sum(file.size_bytes for file in table.snapshot().files)


def made_values(chance: np.random.Generator, count: int) -> list[bytes]:
    random = chance.bytes(50 * count)
    return [random[50 * n : 50 * n + 50].hex().encode() for n in range(count)]


def search(log: TopicLog, where: str) -> None:
    if log.search(where).to_arrow().num_rows:
        raise RuntimeError(f"a record is found by {where}")


def read(log: TopicLog, records: int) -> None:
    every = (record for number in range(PARTITIONS) for record in log.read(number).records())
    if sum(1 for _ in islice(every, records)) != records:
        raise RuntimeError(f"fewer than {records} records were read")


def consume(url: str, cold: str, records: int) -> None:
    command = [sys.executable, "-m", "lakelog", "--redis", url, "--cold", cold]
    command += ["consume", "plain", "--output", "json", "--max", str(records)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

"""What records compress to says nothing of the memory that reading them takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from memory_process import ROLES

from lakelog import Lakelog
from lakelog.codec import Entry, ProducedBatch, encode
from lakelog.hot.append import AppendCall
from lakelog.values.config import KIB, MIB, Compression, EntryFormat
from lakelog.values.record import produced_batch

LIMIT_BYTES = 512 * MIB
CODECS = [Compression.LZ4, Compression.ZSTD]

#: Reads that come out of the cold tier too, once it is archived.
FROM_COLD = ["consume", "read", "task", "explore"]


@pytest.fixture
def growth(redis_url: str, tmp_path: Path) -> Callable[[str], tuple[int, int]]:
    """``growth(role)``: by how much the process of a role grows, and what it saw."""

    def run(role: str) -> tuple[int, int]:
        script = Path(__file__).with_name("memory_process.py")
        done = subprocess.run(
            [sys.executable, str(script), redis_url, str(tmp_path / "cold"), "t", role],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        grown, seen = map(int, done.stdout.split())
        return grown, seen

    return run


def append_copies(lake: Lakelog, entry: Entry, copies: int, name: str = "t") -> int:
    """The entry so many times; how many records these are."""
    settings = {
        "lakelog.max.decoded.bytes": 2**31 - 1,
        "max.message.bytes": 16 * MIB,
        "retention.ms": -1,
        "local.retention.ms": 0,
    }
    topic = lake.topics.create(name, 1, settings)
    count = entry.record_count
    for start in range(0, copies, 200):
        batch = [
            AppendCall(
                topic.partition(0),
                topic.topic_id,
                ProducedBatch((entry,), 1, 0, at * count, (at + 1) * count - 1),
            )
            for at in range(start, min(copies, start + 200))
        ]
        for answer in lake.hot.append_all(batch):
            assert not isinstance(answer, Exception), answer
    return copies * count


def zeros(codec: Compression) -> Entry:
    """One record of 100 MB that takes some KiB."""
    records = produced_batch([(1_700_000_000_000, None, bytes(100_000_000), ())])
    (entry,) = encode(records, EntryFormat.ARROW, codec, max_entry_bytes=16 * MIB)
    return entry


def repetitive(codec: Compression) -> Entry:
    """Ordinary JSON that repeats itself, 256 KiB of it."""
    value = json.dumps(
        {"status": "ok", "message": "all is well", "tags": ["a", "b"] * 400}
    ).encode()
    rows = [(1_700_000_000_000 + n, b"key", value, ()) for n in range(60)]
    return encode(produced_batch(rows), EntryFormat.ARROW, codec)[0]


@pytest.mark.parametrize(
    ("made", "codec", "decoded_bytes"),
    [
        pytest.param(zeros, Compression.ZSTD, 800_000_000, marks=pytest.mark.slow),
        pytest.param(repetitive, Compression.LZ4, 1_200_000_000, marks=pytest.mark.slow),
        pytest.param(zeros, Compression.LZ4, 1_600_000_000, marks=pytest.mark.slow),
        pytest.param(repetitive, Compression.ZSTD, 1_200_000_000, marks=pytest.mark.slow),
    ],
)
def test_no_reader_takes_more_than_its_steps(lake, growth, codec, made, decoded_bytes):
    entry = made(codec)
    assert entry.size_bytes * 50 < entry.decoded_bytes
    records = append_copies(lake, entry, decoded_bytes // entry.decoded_bytes)
    for role in [*ROLES, *FROM_COLD]:  # archived by the last of the roles
        grown, seen = growth(role)
        print(f"{role} grew by {grown // MIB} MiB")  # pytest -s shows it
        assert seen == records, role
        assert grown <= LIMIT_BYTES, f"{role} grew by {grown // MIB} MiB"


def random(codec: Compression) -> Entry:
    """256 KiB that no codec makes smaller."""
    rows = [(1_700_000_000_000 + n, b"key", os.urandom(KIB), ()) for n in range(240)]
    return encode(produced_batch(rows), EntryFormat.ARROW, codec)[0]


@pytest.mark.parametrize(
    ("made", "decoded_bytes"),
    [(zeros, 200_000_000), pytest.param(random, 140_000_000, marks=pytest.mark.slow)],
)
def test_archivers_of_several_topics_take_no_more_together(lake, growth, made, decoded_bytes):
    entry = made(Compression.ZSTD)
    copies = decoded_bytes // entry.decoded_bytes
    topics = ["t", *(f"t{number}" for number in range(7))]
    records = sum(append_copies(lake, entry, copies, topic) for topic in topics)
    grown, seen = growth("archive_all")
    assert (seen, grown <= LIMIT_BYTES) == (records, True), f"{grown // MIB} MiB"


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.value)
def test_what_once_took_gigabytes_is_read_and_archived(lake, growth, codec):
    entry = repetitive(codec)
    records = append_copies(lake, entry, 31 * MIB // entry.size_bytes)
    for role in [*ROLES, *FROM_COLD]:
        grown, seen = growth(role)
        assert (seen, grown <= LIMIT_BYTES) == (records, True), f"{role}: {grown // MIB} MiB"

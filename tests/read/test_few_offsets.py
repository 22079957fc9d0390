"""A log in one folder: what it skips after its Redis was killed, and how it gets more offsets."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import lakelog
from lakelog import Lakelog
from lakelog.testing.eventually import eventually
from lakelog.values.reservation import FEW_OFFSETS


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


class Folder:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lake = Lakelog.embedded(directory)

    def send(self, count: int) -> list[int]:
        """The offsets of so many records of a new producer."""
        with self.lake.producer() as producer:
            sent = [producer.send("orders", b"value") for _ in range(count)]
        return [one.result().offset for one in sent]

    def kill(self) -> None:
        """Ends Redis hard, with all that it was told on its disk, and opens the log again."""
        socket = self.directory / "redis" / "redis.sock"
        with redis.Redis(unix_socket_path=str(socket)) as client:
            client.config_set("appendfsync", "always")  # a slow disk may hold writes back
            client.set("last", 1)
            os.kill(client.info("server")["process_id"], signal.SIGKILL)
            eventually(lambda: not _answers(client))
        self.lake.close()
        self.lake = Lakelog.embedded(self.directory)


@pytest.fixture
def folder(tmp_path) -> Iterator[Folder]:
    it = Folder(tmp_path / "log")
    it.lake.topics.create("orders", 1)
    yield it
    it.lake.close()


def test_it_skips_at_most_as_many_as_it_has_records(folder):
    given = folder.send(5 * FEW_OFFSETS)
    assert given == list(range(5 * FEW_OFFSETS))
    for kills in range(1, 4):
        folder.kill()
        (offset,) = folder.send(1)
        assert offset < (kills + 1) * 2 * len(given)


def test_archiving_and_cleaning_up_keep_what_is_reserved(folder):
    given = folder.send(700)
    folder.lake.archive("orders")
    given += folder.send(700)
    folder.kill()
    folder.lake.archive("orders")
    given += folder.send(2)
    assert given[:1400] == list(range(1400))
    assert given[1400] < 1400 + 4 * FEW_OFFSETS
    assert folder.lake.log("orders").read(0).to_arrow()["offset"].to_pylist() == given


def test_a_topic_that_was_deleted_and_brought_back_skips_as_little(folder):
    given = folder.send(3)
    folder.lake.topics.delete("orders")
    folder.kill()
    folder.lake.undelete("orders")
    given += folder.send(1)
    assert given[:3] == [0, 1, 2]
    assert given[3] <= FEW_OFFSETS


def test_a_partition_that_is_added_begins_with_few_as_well(folder):
    folder.lake.topics.add_partitions("orders", 2)
    seen = folder.lake.hot.offsets(folder.lake.topics.get("orders").topic_partitions())
    assert {one.reserved_end for one in seen.values()} == {FEW_OFFSETS}


def test_a_recovery_counts_as_few_what_python_does() -> None:
    script = (Path(lakelog.__file__).parent / "hot" / "recovery.lua").read_text("utf-8")
    assert f"local FEW_OFFSETS = {FEW_OFFSETS} " in script

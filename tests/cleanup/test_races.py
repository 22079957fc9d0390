"""Beside others in their own processes, cleanup loses and doubles nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import cleanup_process as made
import pytest

from lakelog.cleanup.cleanup import Cleanup
from lakelog.values.config import TopicConfig
from lakelog.values.record import to_records
from lakelog.values.topic import Topic

PROGRAM = Path(__file__).with_name("cleanup_process.py")
SETTINGS = {
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "0",
    "retention.ms": "-1",
    "file.delete.delay.ms": "0",
}


class Case:
    def __init__(self, directory: Path, partitions: int, **settings: str) -> None:
        self.directory = directory
        self.topic = Topic(
            "orders", uuid.uuid4(), partitions, TopicConfig.of({**SETTINGS, **settings})
        )
        self.root = str(directory / "cold")
        (directory / "topic.pickle").write_bytes(pickle.dumps((self.topic, self.root)))

    def table(self):
        return made.open_table(self.topic, self.root)

    def start(self, mode: str, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), str(self.directory), mode, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def offsets(self, partition: int) -> list[int]:
        table = self.table()
        files = table.snapshot().files.of_partition(partition)
        tp = self.topic.partition(partition)
        records = [r for b in table.read(files, 0, 2**53) for r in to_records(tp, b)]
        for record in records:  # byte for byte as it was archived
            assert (record.key, record.value) == (
                made.key(record.offset),
                made.value(record.offset),
            )
        return [record.offset for record in records]

    def check(self, partition: int) -> None:
        """What must be there: the latest of each key of what was cleaned, and all above it."""
        snapshot = self.table().snapshot()
        cleaned, end = snapshot.cleaned_end(partition), snapshot.archived_end(partition)
        found = self.offsets(partition)
        assert found == sorted(set(found))
        latest = {made.key(offset): offset for offset in range(cleaned)}
        assert found == sorted([*latest.values(), *range(cleaned, end)])


@pytest.fixture
def make_case(tmp_path: Path) -> Callable[..., Case]:
    return lambda partitions=2, **settings: Case(tmp_path, partitions, **settings)


def test_two_cleanups_and_an_archiver_at_once_keep_each_record_once(make_case):
    # Vacuum takes what nobody should read any more; without any delay it takes it from the others.
    case = make_case(**{"file.delete.delay.ms": "3600000"})
    made.archive(case.table(), case.topic, 0, segments=2)
    made.archive(case.table(), case.topic, 1, segments=2)
    processes = [case.start("clean", "4"), case.start("clean", "4"), case.start("archive", "12")]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert output.endswith("done\n")

    Cleanup(case.topic, case.table()).run()
    for partition in (0, 1):
        snapshot = case.table().snapshot()
        assert snapshot.archived_end(partition) == 14 * made.SEGMENT_RECORDS
        assert snapshot.cleaned_end(partition) == 13 * made.SEGMENT_RECORDS
        case.check(partition)
        assert len(snapshot.files.of_partition(partition)) <= 14

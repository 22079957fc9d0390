"""Killed anywhere, or beside others in their own processes: cleanup loses and doubles nothing."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import cleanup_process as made
import pytest
from deltalake import DeltaTable

from lakelog import failpoints
from lakelog.cleanup.cleanup import Cleanup
from lakelog.config import TopicConfig
from lakelog.record import to_records
from lakelog.topic import Topic

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

    def start(self, mode: str, *arguments: str, failpoint: str | None = None) -> subprocess.Popen:
        environment = dict(os.environ)
        if failpoint:
            environment[failpoints.ENVIRONMENT_VARIABLE] = f"{failpoint}=exit"
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), str(self.directory), mode, *arguments],
            env=environment,
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


@pytest.mark.parametrize(
    "step", [name for name in failpoints.NAMES if name.startswith(("cleanup.", "cold."))]
)
def test_a_cleanup_killed_at_any_step_is_settled_by_the_next_run(make_case, step):
    case = make_case()
    for partition in (0, 1):
        made.archive(case.table(), case.topic, partition, segments=4)

    process = case.start("once", failpoint=step)
    assert process.wait(timeout=60) == failpoints.KILLED, process.stderr.read()

    for partition in (0, 1):
        case.check(partition)
    for partition in (0, 1):
        made.archive(case.table(), case.topic, partition)
    report = Cleanup(case.topic, case.table()).run()
    assert not report.failures
    for partition in (0, 1):
        case.check(partition)
        snapshot = case.table().snapshot()
        assert snapshot.cleaned_end(partition) == 4 * made.SEGMENT_RECORDS
        assert all(len(s.files) == 1 for s in snapshot.files.segments(partition)[:-1])
    Cleanup(case.topic, case.table()).run(("vacuum",))
    there = {str(path) for path in Path(case.table().path).rglob("*.parquet")}
    assert there == set(DeltaTable(case.table().path).file_uris())  # nothing is left over


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


@pytest.mark.slow
def test_cleanups_without_any_delete_delay_disturb_each_other_but_lose_nothing(make_case):
    case = make_case()
    made.archive(case.table(), case.topic, 0, segments=3)
    made.archive(case.table(), case.topic, 1, segments=3)
    processes = [case.start("clean", "3"), case.start("archive", "6"), case.start("clean", "3")]
    for process in processes:
        process.communicate(timeout=120)
    assert processes[1].returncode == 0
    report = Cleanup(case.topic, case.table()).run()
    assert not report.failures
    for partition in (0, 1):
        case.check(partition)

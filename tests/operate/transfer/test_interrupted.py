"""Exports and imports that end at any step, are finished by the same call."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from transfer_bench import rows, send

from lakelog import Lakelog
from lakelog.base.failpoints import KILLED, NAMES, armed
from lakelog.errors import CorruptExportError

pytestmark = pytest.mark.slow

EXPORT = [name for name in NAMES if name.startswith(("export.", "transfer."))]
IMPORT = [name for name in NAMES if name.startswith(("import.", "transfer."))]


def killed_at(failpoint: str, lake: Lakelog, cold: Path, *command: str) -> None:
    """Runs a command in a process that dies at the failpoint."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lakelog", "--redis", lake.place.source.url),
            *("--cold", str(cold), "--engine", "inline", *command),
        ],
        env={**os.environ, "LAKELOG_FAILPOINTS": f"{failpoint}=exit"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == KILLED, done.stderr


@pytest.mark.parametrize("name", ["export", "export.tar"])
@pytest.mark.parametrize("failpoint", EXPORT)
def test_a_killed_export_is_no_export_and_is_finished(
    lake: Lakelog, other: Lakelog, tmp_path: Path, failpoint: str, name: str
) -> None:
    before = rows(lake, "orders")

    killed_at(failpoint, lake, tmp_path / "cold", "export", "orders", "--to", str(tmp_path / name))

    with pytest.raises(CorruptExportError, match=r"(?i)the same `lakelog export`"):
        other.import_topics(tmp_path / name)
    lake.export(tmp_path / name, "orders")
    other.import_topics(tmp_path / name)
    assert rows(other, "orders") == before


class Fault(Exception):
    """What ends a call in the middle."""


def fault_at(number: int) -> Callable[[], None]:
    """Fails when it is come by for that time, and each time after."""
    times = itertools.count()

    def action() -> None:
        if next(times) >= number:
            raise Fault

    return action


def test_an_archive_that_was_cut_short_copies_what_was_not_copied_yet(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    with armed("transfer.after_copy", fault_at(5)), pytest.raises(Fault):
        lake.export(tmp_path / "export.tar", "orders")
    held = list((tmp_path / "export.tar.part").rglob("archive-*.parquet"))
    assert len(held) == 5 + 3  # of three partitions the hot records were written at once
    told = lake.erase("orders", "k1", dry_run=True).exports
    assert [one.place for one in told] == [str(tmp_path / "export.tar")]  # it holds records, too

    copied = itertools.count()
    with armed("transfer.after_copy", lambda: bool(next(copied))):
        lake.export(tmp_path / "export.tar", "orders")

    assert next(copied) == 9 - 5
    other.import_topics(tmp_path / "export.tar")
    assert rows(other, "orders") == rows(lake, "orders")
    assert not (tmp_path / "export.tar.part").exists()


@pytest.mark.parametrize("name", ["export", "export.tar"])
def test_an_export_that_was_finished_is_another_one_than_the_next_into_its_place(
    lake: Lakelog, other: Lakelog, tmp_path: Path, name: str
) -> None:
    first = lake.export(tmp_path / name, "orders")
    send(lake, "orders", 960, 30)
    second = lake.export(tmp_path / name, "orders")
    assert first.export_id != second.export_id
    (imported,) = other.import_topics(tmp_path / name)
    assert imported.records == 990


def test_an_archive_begins_its_topic_again_when_a_file_went_meanwhile(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    """The files that came before another topic's stay; nothing of the first attempt does."""
    lake.topics.create("before", 1, {"retention.ms": -1, "local.retention.ms": 0})
    send(lake, "before", 0, 50)
    lake.archive("before")
    file = sorted((tmp_path / "cold" / "orders").rglob("archive-*.parquet"))[-1]
    aside = tmp_path / "aside"
    file.rename(aside)
    looks = itertools.count()

    def come_back() -> None:
        if next(looks) == 2:  # of topics: the first, the second, the second again
            aside.rename(file)

    with armed("export.after_hot", come_back):
        lake.export(tmp_path / "export.tar", ["before", "orders"])

    with tarfile.open(tmp_path / "export.tar") as archive:
        names = archive.getnames()
    assert len(set(names)) == len(names)
    other.import_topics(tmp_path / "export.tar")
    for topic in ("before", "orders"):
        assert rows(other, topic) == rows(lake, topic)


@pytest.mark.parametrize("failpoint", IMPORT)
def test_a_killed_import_is_finished_and_doubles_nothing(
    lake: Lakelog, other: Lakelog, tmp_path: Path, failpoint: str
) -> None:
    lake.export(tmp_path / "export", "orders")
    before = rows(lake, "orders")

    killed_at(failpoint, other, tmp_path / "other", "import", str(tmp_path / "export"))
    assert [one.name for one in other.topics.list()] in ([], ["orders"])
    other.import_topics(tmp_path / "export")
    again = other.import_topics(tmp_path / "export")

    assert not again[0].is_new
    assert rows(other, "orders") == before
    send(other, "orders", 960, 40)
    other.archive("orders")
    after = rows(other, "orders")
    assert sum(table.num_rows for table in after.values()) == 1000
    assert len(list((tmp_path / "other" / "orders").iterdir())) == 1
    assert not list((tmp_path / "other" / "orders").rglob(".archive-*"))  # what was half there
    assert other.status().failures == ()


def test_an_import_that_redis_lost_uses_no_offset_twice(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    lake.export(tmp_path / "export", "orders")
    other.import_topics(tmp_path / "export")
    send(other, "orders", 960, 40)  # given out, and lost
    ends = {n: one.log_end for n, one in other.log("orders").offsets().items()}
    for server in other.hot.connections.all():
        server.call(("FLUSHALL",))

    other.import_topics(tmp_path / "export")

    again = {n: one.log_end for n, one in other.log("orders").offsets().items()}
    assert all(again[n] >= ends[n] for n in ends)
    assert rows(other, "orders") == rows(lake, "orders")


def test_an_export_beside_producers_archivers_and_cleanups_is_of_one_moment(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    stop = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            start = 960
            while not stop.is_set():
                send(lake, "orders", start, 50)
                lake.archive("orders")
                lake.cleanup("orders")
                start += 50
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for number in range(5):
            lake.export(tmp_path / f"export-{number}", "orders")
    finally:
        stop.set()
        worker.join()
    assert errors == []
    whole = rows(lake, "orders")
    for number in range(5):
        other.import_topics(tmp_path / f"export-{number}", name=f"copy-{number}")
        held = rows(other, f"copy-{number}")
        assert all(held[n] == whole[n].slice(0, held[n].num_rows) for n in whole)
        assert sum(table.num_rows for table in held.values()) >= 960

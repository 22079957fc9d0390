"""Whatever stands in a Delta table's log, who reads the table goes on or refuses it by name."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from test_texts import odd_values, places

from lakelog import Lakelog
from lakelog.archive.report import Trouble
from lakelog.cold.by_path.path_table import PathTable
from lakelog.errors import LakelogError
from lakelog.jobs.run_record import TroubleRows, recent_troubles
from lakelog.jobs.status_rows import RunKey, status_rows
from lakelog.jobs.status_table import open_status_table
from lakelog.operate.check.verification import verify
from lakelog.operate.status import Status
from lakelog.values.topic import STATUS_TABLE

TROUBLE = Trouble("orders", 1_700_000_000_000, "no room", 1, None)
KINDS = ["log", "status"]
RUN = RunKey("archive", "run-1")


@dataclass
class Root:
    """A cold root that each example damages anew."""

    lake: Lakelog
    root: Path
    kept: Path

    def reset(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.kept, self.root)

    def table(self) -> PathTable:
        table = self.lake.log("orders").table
        assert isinstance(table, PathTable)
        return table

    def told(self, kind: str) -> list[Path]:
        """The files that somebody may have written to."""
        table = next(iter((self.root / "orders").glob("*-*")))
        return {
            "log": sorted((table / "_delta_log").glob("*")),
            "status": sorted((self.root / STATUS_TABLE).rglob("*.*")),
        }[kind]


def fill(lake: Lakelog, root: Path) -> None:
    lake.topics.create("orders", 1, {"retention.ms": -1, "local.retention.ms": 0})
    for at in range(4):
        with lake.producer() as producer:
            for n in range(5):
                producer.send("orders", b"%d" % n, key=b"k", timestamp_ms=1_700_000_000_000 + n)
        lake.archive("orders")
        if at == 2:
            DeltaTable(lake.log("orders").table.path).create_checkpoint()
    table = Path(lake.log("orders").table.path)
    file = lake.log("orders").table.snapshot().files.of_partition(0)[0]
    (table / file.path).unlink()
    lake.skips("orders", 0).skip_file(file.path, save_to=root.parent / "skipped.json")
    TroubleRows(lake.place.cold)([TROUBLE])
    open_status_table(lake.place.cold).append(
        status_rows(RUN, Status((), (), 5), {}, 1.0, troubles=[TROUBLE]), RUN
    )


@pytest.fixture
def root(redis_url: str, tmp_path: Path) -> Iterator[Root]:
    path = tmp_path / "cold"
    with Lakelog.connect(redis_url, str(path), engine="inline") as lake:
        fill(lake, path)
        shutil.copytree(path, tmp_path / "kept")
        yield Root(lake, path, tmp_path / "kept")


USES: dict[str, Callable[[Root], Any]] = {
    "snapshot": lambda root: root.table().snapshot(),
    "read": lambda root: list(root.lake.log("orders").fetches(0, 5)),
    "archive": lambda root: root.lake.archive("orders", patience=timedelta(0)),
    "mirrored": lambda root: root.table().mirrored(),
    "orphans": lambda root: root.table().remove_orphans(),
    "vacuum": lambda root: root.table().vacuum(),
    "verify": lambda root: list(verify(root.lake.log("orders"))),
    "cleanup": lambda root: root.lake.cleanup("orders"),
    "skipped": lambda root: root.lake.skips("orders", 0).list(),
    "troubles": lambda root: recent_troubles(root.lake.place.cold),
    "rows of a run": lambda root: open_status_table(root.lake.place.cold).rows_of(RUN),
    "a row": lambda root: TroubleRows(root.lake.place.cold)([TROUBLE]),
    "the last row of a run": lambda root: open_status_table(root.lake.place.cold).append(
        status_rows(RUN, Status((), (), 5), {}, 1.0, troubles=[TROUBLE]), RUN
    ),
}


def damage(root: Root, kind: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """One file is another; what was done."""
    files = root.told(kind)
    if not files:
        return "nothing is left"
    file = draw(st.sampled_from(files))
    data = file.read_bytes()
    how = draw(st.sampled_from(["member", "member", "byte", "cut", "gone"]))
    if how == "gone" or not data:
        file.unlink()
        return f"{file.name} is gone"
    if how == "cut":
        at = draw(st.integers(0, len(data)))
        file.write_bytes(data[:at])
        return f"{file.name} is cut at {at}"
    lines = data.splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    try:
        value = json.loads(lines[at])
    except ValueError:  # no JSON, or not any more
        how = "byte"
    if how == "byte":
        at, mask = draw(st.integers(0, len(data) - 1)), draw(st.integers(1, 255))
        file.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
        return f"byte {at} of {file.name} is another, by {mask}"
    path = draw(st.sampled_from(places(value)))
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    odd = draw(odd_values)
    if not path:
        value = odd
    elif draw(st.booleans()):
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    lines[at] = json.dumps(value).encode()
    file.write_bytes(b"\n".join(lines) + b"\n")
    return f"{path} in line {at} of {file.name} is {str(odd)[:80]!r} or gone"


def escaped(root: Root, seed: int) -> list[tuple[str, str]]:
    """Uses that end in what is no error of ours."""
    found = []
    for name in random.Random(seed).sample(sorted(USES), len(USES)):
        try:
            USES[name](root)
        except LakelogError:
            pass
        except BaseException as error:  # a panic of delta-rs is none of Exception's
            if isinstance(error, KeyboardInterrupt):
                raise
            found.append((name, repr(error)))
    return found


@pytest.mark.parametrize("name", sorted(USES))
def test_what_is_sound_is_used(root, name):
    USES[name](root)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_file_that_somebody_else_wrote_to_ends_in_our_errors(root, kind, data, seed):
    root.reset()
    note = damage(root, kind, data.draw)
    assert escaped(root, seed) == [], note


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=500)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_several_files_that_somebody_else_wrote_to_end_in_our_errors(root, kind, data, seed):
    root.reset()
    notes = [damage(root, kind, data.draw) for _ in range(data.draw(st.integers(1, 3)))]
    assert escaped(root, seed) == [], notes

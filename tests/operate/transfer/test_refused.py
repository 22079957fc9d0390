"""What is damaged or forged is refused, by errors that say so, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transfer_bench import filled

from lakelog import Lakelog
from lakelog.errors import CorruptExportError, NewerVersionError
from lakelog.operate.transfer.checking import check_sizes, checked_index
from lakelog.operate.transfer.manifest import Manifest
from tests.support.servers import RedisServer


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of a topic."""
    found = tmp_path_factory.mktemp("exported")
    server = RedisServer(found / "redis").start()
    try:
        with filled(server.url, found / "cold") as lake:
            lake.export(found / "export", "orders")
    finally:
        server.kill(at_once=True)
    return found


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported / "export", tmp_path / "export"))


@pytest.fixture
def other(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    """A log of nobody yet."""
    with Lakelog.connect(redis_url, tmp_path / "other", engine="inline") as lake:
        yield lake


def nothing_came(other: Lakelog, tmp_path: Path) -> bool:
    left = [path for path in (tmp_path / "other").rglob("*") if path.is_file()]
    return other.topics.list() == [] and left == []


def forged(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the manifest, with the checksum that it has then."""
    path = folder / "manifest.json"
    export = json.loads(path.read_bytes())["export"]
    change(export)
    text = json.dumps(export, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(f'{{"sha256":"{digest}","export":{text}}}')


def data_file(folder: Path) -> Path:
    return sorted(folder.rglob("archive-*.parquet"))[0]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped bit": lambda f: flip(data_file(f)),
    "a longer file": lambda f: data_file(f).write_bytes(data_file(f).read_bytes() + b"x"),
    "a missing file": lambda f: data_file(f).unlink(),
    "a link": lambda f: link(data_file(f)),
    "a flipped bit in the manifest": lambda f: flip(f / "manifest.json"),
    "no manifest": lambda f: (f / "manifest.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_refused(
    other: Lakelog, folder: Path, tmp_path: Path, damage: str
) -> None:
    DAMAGE[damage](folder)
    with pytest.raises(CorruptExportError, match=r"is not (what|the manifest that) was written"):
        other.import_topics(folder)
    assert nothing_came(other, tmp_path)


def stats(export: dict[str, Any], **changed: object) -> None:
    row = export["topics"][0]["files"][0]
    row[4] = json.dumps(json.loads(row[4]) | changed)


def path_of(export: dict[str, Any], path: str) -> None:
    export["topics"][0]["files"][0][0] = path


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "fewer records": lambda e: stats(e, numRecords=1),
    "a later end": lambda e: e["topics"][0]["partitions"][0].__setitem__(1, 10**6),
    "an end beyond the log": lambda e: e["topics"][0]["partitions"][0].__setitem__(4, 0),
    "a file less": lambda e: e["topics"][0]["files"].pop(),
    "a file twice": lambda e: e["topics"][0]["files"].append(e["topics"][0]["files"][0]),
    "a topic twice": lambda e: e["topics"].append(e["topics"][0]),
    "a path above": lambda e: path_of(e, "partition=0/segment=0/../../../../x.parquet"),
    "an absolute path": lambda e: path_of(e, "/etc/passwd"),
    "a path with backslashes": lambda e: path_of(e, "partition=0\\segment=0\\x.parquet"),
    "a path of a drive": lambda e: path_of(e, "C:/x.parquet"),
    "a name above": lambda e: e["topics"][0]["properties"].update({"lakelog.topic.name": ".."}),
    "other partitions": lambda e: e["topics"][0]["partitions"].pop(),
    "a group beyond the end": lambda e: e["topics"][0]["groups"][0].__setitem__(4, 10**9),
    "other settings": lambda e: e["topics"][0]["properties"].update({"lakelog.topic.config": "{}"}),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_manifest_is_refused(
    other: Lakelog, folder: Path, tmp_path: Path, forgery: str
) -> None:
    forged(folder, FORGED[forgery])
    with pytest.raises(CorruptExportError):
        other.import_topics(folder)
    assert nothing_came(other, tmp_path)


def test_an_export_of_a_newer_lakelog_is_left_alone(
    other: Lakelog, folder: Path, tmp_path: Path
) -> None:
    forged(folder, lambda export: export.update(format=2))
    with pytest.raises(NewerVersionError, match="upgrade"):
        other.import_topics(folder)
    assert nothing_came(other, tmp_path)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all that is in a JSON value."""
    found = [path] if path else []
    if isinstance(value, dict):
        items: list[tuple[Any, Any]] = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def test_whatever_a_manifest_says_ends_in_an_error_of_ours(folder: Path) -> None:
    text = json.dumps(json.loads((folder / "manifest.json").read_bytes())["export"])
    ways = places(json.loads(text))

    @given(st.sampled_from(ways), JUNK)
    @settings(max_examples=400)
    def mutate(way: tuple[Any, ...], junk: Any) -> None:
        export = json.loads(text)
        inner = export
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = junk
        said = json.dumps(export, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(said.encode()).hexdigest()
        with suppress(CorruptExportError, NewerVersionError):
            found = Manifest.parse(f'{{"sha256":"{digest}","export":{said}}}'.encode(), "here")
            for one in found.topics:
                check_sizes(
                    "here", one, {f"{one.folder}/{f.path}": f.size_bytes for f in one.all_files()}
                )
                checked_index("here", one)

    mutate()

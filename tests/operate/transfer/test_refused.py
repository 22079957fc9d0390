"""What is damaged or forged is refused, by errors that say so, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
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
from lakelog.operate.transfer.places import ArchiveReader
from tests.support.servers import RedisServer


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same topic exported as a folder and as an archive."""
    found = tmp_path_factory.mktemp("exported")
    server = RedisServer(found / "redis").start()
    try:
        with filled(server.url, found / "cold") as lake:
            lake.export(found / "export", "orders")
            lake.export(found / "export.tar", "orders")
    finally:
        server.kill(at_once=True)
    return found


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported / "export", tmp_path / "export"))


@pytest.fixture
def archive(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(exported / "export.tar", tmp_path))


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


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, "/etc/passwd"
    return info


MEMBERS = {
    "a path above": member("../x"),
    "an absolute path": member("/x"),
    "a path with backslashes": member("orders\\x"),
    "a path of a drive": member("C:/x"),
    "a hidden way up": member("orders/../../x"),
    "a symbolic link": member("orders/x", tarfile.SYMTYPE),
    "a hard link": member("orders/x", tarfile.LNKTYPE),
    "a device": member("orders/x", tarfile.CHRTYPE),
    "a pipe": member("orders/x", tarfile.FIFOTYPE),
    "a manifest twice": member("manifest.json"),
    "one that no manifest names": member("orders/x"),
}


@pytest.mark.parametrize("what", MEMBERS)
def test_an_archive_with_more_in_it_is_refused(
    other: Lakelog, archive: Path, tmp_path: Path, what: str
) -> None:
    with tarfile.open(archive, "a:", format=tarfile.GNU_FORMAT) as opened:
        opened.addfile(MEMBERS[what])
    with pytest.raises(CorruptExportError):
        other.import_topics(archive)
    assert nothing_came(other, tmp_path)


def test_a_member_that_ends_beyond_the_archive_is_refused(
    other: Lakelog, archive: Path, tmp_path: Path
) -> None:
    with archive.open("r+b") as file:
        file.write(member("orders/x", size=2**40).tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(CorruptExportError, match="ends within"):
        other.import_topics(archive)
    assert nothing_came(other, tmp_path)


def test_a_compressed_archive_is_refused(other: Lakelog, archive: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "zipped"), "gztar", tmp_path, archive.name)
    (tmp_path / "zipped.tar.gz").rename(tmp_path / "zipped.tar")
    with pytest.raises(CorruptExportError, match="no header of a tar archive"):
        other.import_topics(tmp_path / "zipped.tar")


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


def test_whatever_bytes_an_archive_has_ends_in_an_error_of_ours(
    archive: Path, tmp_path: Path
) -> None:
    content = archive.read_bytes()
    path = tmp_path / "mutated.tar"
    headers = [at for at in range(0, len(content), 512) if content[at + 257 : at + 262] == b"ustar"]

    @given(st.sampled_from(headers), st.integers(0, 511), st.binary(min_size=1, max_size=40))
    @settings(max_examples=300)
    def mutate(header: int, at: int, junk: bytes) -> None:
        mutated = bytearray(content)
        mutated[header + at : header + at + len(junk)] = junk
        # A checksum that fits, so that the reader looks at the rest.
        block = bytes(mutated[header : header + 512])
        total = sum(block[:148]) + 8 * 32 + sum(block[156:512])
        mutated[header + 148 : header + 156] = b"%06o\0 " % total
        path.write_bytes(mutated)
        with suppress(CorruptExportError, NewerVersionError):
            reader = ArchiveReader(path)
            Manifest.parse(reader.manifest(), "here")

    mutate()


def test_headers_behind_each_other_without_end_are_refused(other: Lakelog, tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 3
    path = tmp_path / "deep.tar"
    path.write_bytes((header.tobuf(tarfile.GNU_FORMAT) + b"ab\0".ljust(512, b"\0")) * 3_000)

    with pytest.raises(CorruptExportError, match="without end"):
        other.import_topics(path)


def test_an_empty_file_is_no_archive(other: Lakelog, tmp_path: Path) -> None:
    path = tmp_path / "empty.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(member("orders/x", size=1), io.BytesIO(b"x"))
    with pytest.raises(CorruptExportError, match=r"has no manifest\.json"):
        other.import_topics(path)

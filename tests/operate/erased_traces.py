"""Where bytes stand in a log: its files as they are and decoded, and every key of Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import redis


def traces(
    folder: Path, client: redis.Redis, secrets: Iterable[bytes], skip: Callable[[Path], bool]
) -> list[str]:
    """Where one of the secrets stands: files below a folder, relative to it, and ``key NAME``.

    Args:
        skip: files that are not looked into.
    """
    secrets = list(secrets)
    found = []
    for file in folder.rglob("*"):
        if not file.is_file() or file.suffix == ".sock" or skip(file):
            continue
        with suppress(FileNotFoundError):  # it went meanwhile
            if any(one in content for content in _contents(file) for one in secrets):
                found.append(str(file.relative_to(folder)))
    for key in client.scan_iter():
        whole = [client.dump(key) or b"", _shown(client, key)]
        if any(one in content for content in whole for one in secrets):
            found.append(f"key {key.decode()}")
    return found


def _contents(file: Path) -> Iterator[bytes]:
    yield file.read_bytes()
    if ".parquet" in file.name:
        with suppress(pa.ArrowInvalid):  # it is damaged, or was not written to its end
            for column in pq.read_table(file, partitioning=None).columns:
                yield repr(column.to_pylist()).encode()


def _shown(client: redis.Redis, key: bytes) -> bytes:
    """What a key holds, without the compression that a dump has."""
    kind = client.type(key)
    reads: dict[bytes, Callable[[bytes], Any]] = {
        b"none": lambda key: b"",  # it went meanwhile
        b"stream": client.xrange,
        b"hash": client.hgetall,
        b"string": client.get,
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"list": lambda key: client.lrange(key, 0, -1),
    }
    return repr(reads[kind](key)).encode()

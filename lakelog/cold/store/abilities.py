"""What a log asks of the store that its cold tier lies in, tried for real."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction
from msgspec import Struct

from ...errors import LakelogError
from ..store_errors import COMMITS_NEED, cannot_commit, one_line
from .storage import Storage

_CONTENT = b"lakelog"
_WRITERS = 4  # at once: each looks for the newest version first, and then writes the next
#: Without these, nothing else can be tried. (A store that is away is given a minute for each.)
_NEEDED = ("list", "write")
_SCHEMA = pa.schema([("offset", pa.int64())])


class Ability(Struct, frozen=True):
    """One of the things that are done to a store."""

    name: str
    latency_ms: float | None  # None: it was not tried
    flaw: str | None = None  # why it failed; None: it did not


def abilities(storage: Storage) -> list[Ability]:
    """Lists, writes, reads, commits, and deletes below the root, and says how long each took.

    Of commits of one version that are made at once, all but one must be refused: that is what keeps
    two archivers from archiving a record twice. All that it writes lies in a folder of its own,
    which is removed in any case.
    """
    return _Trial(storage).run()


class _Trial:
    def __init__(self, storage: Storage) -> None:
        self._folder = f"{storage.root.rstrip('/')}/.lakelog-check-{uuid4().hex}"
        self._probe = f"{self._folder}/probe"
        self._storage = storage
        self._done: list[Ability] = []

    def run(self) -> list[Ability]:
        try:
            steps = iter(
                (
                    ("list", self._list),
                    ("write", self._write),
                    ("read", self._read),
                    ("conditional put", self._commit_at_once),
                    ("delete", self._delete),
                )
            )
            for name, does in steps:
                if not self._try(name, does) and name in _NEEDED:
                    break
            self._done += [Ability(name, None) for name, _ in steps]
        finally:
            self._remove()
        return self._done

    def _try(self, name: str, does: Callable[[], float | None]) -> bool:
        """Does it; what it returns is the latency of the step alone, in seconds."""
        started_s = time.perf_counter()
        flaw = took_s = None
        try:
            took_s = does()
        except _Refused as error:
            flaw = str(error)
        except LakelogError as error:
            flaw = error.message
        except (DeltaError, OSError) as error:
            flaw = one_line(error)
            if self._storage.is_local and cannot_commit(flaw):
                flaw = f"{flaw}. {COMMITS_NEED}"
        took_s = time.perf_counter() - started_s if took_s is None else took_s
        self._done.append(Ability(name, 1000 * took_s, flaw))
        return flaw is None

    def _list(self) -> None:
        self._storage.list_files(self._storage.root, recursive=False)

    def _write(self) -> None:
        self._storage.make_folder(self._folder, synced=False)
        self._storage.write_bytes(self._probe, _CONTENT)

    def _read(self) -> None:
        found = self._storage.read_bytes(self._probe)
        if found != _CONTENT:
            held = "nothing" if found is None else f"{len(found)} other bytes"
            raise _Refused(f"a file that was just written reads as {held}")

    def _commit_at_once(self) -> float:
        path, options = f"{self._folder}/table", self._storage.delta_options()
        DeltaTable.create(path, _SCHEMA, storage_options=options)
        writers = [DeltaTable(path, storage_options=options) for _ in range(_WRITERS)]
        start = Barrier(_WRITERS)

        def commit(number: int) -> float | None:
            start.wait()
            started_s = time.perf_counter()
            try:
                _commit(writers[number], f"writer-{number}")
            except CommitFailedError:
                return None
            return time.perf_counter() - started_s

        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="lakelog-check") as threads:
            won = [took_s for took_s in threads.map(commit, range(_WRITERS)) if took_s is not None]
        if len(won) > 1:
            raise _Refused(
                f"it let {len(won)} writers commit the same version of a table, so all but one "
                "have lost their records: it does not know conditional puts (If-None-Match), "
                "without which no two processes may work on a log at once"
            )
        if not won:
            raise _Refused("of several writers at once, none could commit")
        return won[0]

    def _delete(self) -> None:
        self._storage.delete_file(self._probe)
        if self._storage.is_file(self._probe):
            raise _Refused("a file that was just deleted is still there")

    def _remove(self) -> None:
        """What cannot be removed now is told by `delete`, or cannot be reached."""
        with suppress(LakelogError):
            self._storage.remove_folder(self._folder)


class _Refused(Exception):
    """The store does what it should not, or not what it should."""


def _commit(table: DeltaTable, name: str) -> None:
    add = AddAction(
        path=f"{name}.parquet",
        size=0,
        partition_values={},
        modification_time=0,
        data_change=True,
        stats="{}",
    )
    table.create_write_transaction(
        [add],
        mode="append",
        schema=table.schema(),
        partition_by=[],
        commit_properties=CommitProperties(max_commit_retries=0),
    )

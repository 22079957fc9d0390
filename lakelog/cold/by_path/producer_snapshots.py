"""What the producers of a table's partitions had sent last, in a small file beside its log.

``_producers/{partition}-{archived_end}.json`` holds the calls below that archived end (see
`lakelog.producer_calls`). It is written before the commit that moves the archived end there, and
read by that number. So it needs no commit to name it, and no checkpoint, OPTIMIZE or cleanup of the
log loses it. What VACUUM deletes lies in folders whose names do not begin with ``_``.

Two archivers may write the same name: what lies below one offset is the same for both. A file of
another archived end than the table's is of a commit that failed, or is about to be made, or that
others have followed since. Once it is lower it is never asked for again, and the next commit with
calls removes it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...base.json_text import parse_json
from ...errors import ColdTierError, ColdTierRefusedError
from ...values.producer_calls import ProducerCall, calls_of_rows, newest, rows_of_calls
from ..store.storage import Storage, side_by_side
from ..table import ColdSnapshot

logger = logging.getLogger(__name__)

FOLDER = "_producers"

#: How many producers' calls a partition keeps, at about 80 bytes each.
MOST_CALLS = 10_000

_FORMAT = 1
_NAME = re.compile(r"(\d{1,9})-(\d{1,16})\.json", re.ASCII)


class _Name(NamedTuple):
    partition: int
    archived_end: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.archived_end}.json"


class ProducerSnapshots:
    """The snapshots of one table.

    Args:
        path: the table's.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._folder = f"{path}/{FOLDER}"

    def write(self, calls: Mapping[int, Sequence[ProducerCall]], ends: Mapping[int, int]) -> None:
        """Writes the calls of partitions for the archived ends that they will have.

        On local paths they are on the disk afterwards.

        Raises:
            ColdTierError: one could not be written.
        """
        self._storage.make_folder(self._folder)
        side_by_side(
            lambda partition: self._write(_Name(partition, ends[partition]), calls[partition]),
            calls,
        )
        self._storage.sync(self._folder)

    def read(self, ends: Mapping[int, int]) -> dict[int, tuple[ProducerCall, ...]]:
        """The calls of partitions with these archived ends, as far as there are any.

        Raises:
            ColdTierError: a snapshot cannot be read, or is not what was written.
        """
        wanted = {_Name(partition, end) for partition, end in ends.items()}
        names = [name for name in self._names() if name in wanted]
        found = side_by_side(self._read, names)
        return {name.partition: calls for name, calls in zip(names, found, strict=True)}

    def drop_stale(self, snapshot: ColdSnapshot) -> None:
        """Removes those below the table's archived ends; a failure is logged, and the next call
        does the rest.
        """
        try:
            stale = [
                name
                for name in self._names()
                if name.archived_end < snapshot.archived_end(name.partition)
            ]
            self._storage.delete_files(f"{self._folder}/{name}" for name in stale)
        except ColdTierError as error:
            logger.warning("old files in %s stay for now: %s", self._folder, error)

    def _names(self) -> Iterable[_Name]:
        for name in self._storage.file_names(self._folder):
            found = _NAME.fullmatch(name)
            if found is not None:
                yield _Name(int(found[1]), int(found[2]))

    def _write(self, name: _Name, calls: Sequence[ProducerCall]) -> None:
        rows = rows_of_calls(newest(calls, MOST_CALLS))
        content = json.dumps({"lakelog": _FORMAT, "calls": rows}, separators=(",", ":"))
        path = f"{self._folder}/{name}"
        self._storage.write_bytes(path, content.encode())
        self._storage.sync(path)

    def _read(self, name: _Name) -> tuple[ProducerCall, ...]:
        path = f"{self._folder}/{name}"
        content = self._storage.read_bytes(path)
        if content is None:  # others have archived more, and removed it
            return ()
        try:
            said = parse_json(content)
            if said["lakelog"] != _FORMAT:
                raise ValueError(f"its format is {said['lakelog']!r}, not {_FORMAT}")
            return calls_of_rows(said["calls"])
        except (ValueError, KeyError, TypeError) as error:
            raise ColdTierRefusedError(
                f"{path} does not say what producers had sent last ({error}). Put it back from a "
                "backup; or delete it: then whoever repeats work of Spark's sink that is archived "
                "appends it again",
                path=path,
            ) from error

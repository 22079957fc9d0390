"""What a table by name shows to those who look: its history, properties and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from .commit import where_segments
from .entry import read_properties
from .history import Commit, is_newest, read_history
from .notes import Measured, Slice

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


class TableView(Protocol):
    """One table, seen through Spark (`SparkView`) or where it lies (`LogView`)."""

    def exists(self) -> bool:
        """Whether the catalog has it."""
        ...

    def news(self, topic_id: UUID, since: int) -> list[Commit] | None:
        """As `history`; None: nothing was committed above a version. As few questions as can be."""
        ...

    def history(self, topic_id: UUID, since: int) -> list[Commit]:
        """See `read_history`."""
        ...

    def properties(self) -> dict[str, str]:
        """Those of the newest version."""
        ...

    def column_names(self) -> list[str]:
        """Those of the newest version."""
        ...

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]:
        """A row for each file of each slice that has rows in it; ``number`` is the slice's."""
        ...

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]:
        """A row for each file of each segment, with ``partition`` and ``segment``.

        Args:
            only: the partition and base offset of a segment; None: all.
        """
        ...


_MEASURES = (
    "_metadata.file_path AS path, max(_metadata.file_size) AS size_bytes, count(*) AS records, "
    "min(offset) AS first, max(offset) AS last, unix_micros(min(timestamp)) AS min_us, "
    "unix_micros(max(timestamp)) AS max_us"
)


class SparkView:
    """See `TableView`. Runs on: driver."""

    def __init__(self, spark: Callable[[], SparkSession], name: str) -> None:
        self._spark = spark
        self._name = name

    def exists(self) -> bool:
        """See `TableView.exists`."""
        return bool(self._spark().catalog.tableExists(self._name))

    def news(self, topic_id: UUID, since: int) -> list[Commit] | None:
        """See `TableView.news`."""
        if since >= 0 and is_newest(self._spark(), self._name, since):
            return None
        return self.history(topic_id, since)

    def history(self, topic_id: UUID, since: int) -> list[Commit]:
        """See `TableView.history`."""
        return read_history(self._spark(), self._name, topic_id, since)

    def properties(self) -> dict[str, str]:
        """See `TableView.properties`."""
        return read_properties(self._spark(), self._name)

    def column_names(self) -> list[str]:
        """See `TableView.column_names`."""
        return list(self._spark().table(self._name).columns)

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]:
        """See `TableView.measured_slices`."""
        values = ", ".join(
            f"({number}, {one.partition}, {one.segment}L, {one.start_offset}L, {one.end_offset}L)"
            for number, one in enumerate(slices)
        )
        segments: dict[int, set[int]] = {}
        for one in slices:
            segments.setdefault(one.partition, set()).add(one.segment)
        return self._rows(
            f"SELECT /*+ BROADCAST(s) */ number, {_MEASURES} "
            f"FROM {self._name} VERSION AS OF {version} AS t "
            f"JOIN VALUES {values} AS s(number, p, g, low, high) "
            "ON t.partition = s.p AND t.segment = s.g AND t.offset >= s.low AND t.offset < s.high "
            f"WHERE {where_segments(segments)} GROUP BY number, path"
        )

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]:
        """See `TableView.measured_segments`."""
        where = "true" if only is None else where_segments({only[0]: {only[1]}})
        return self._rows(
            f"SELECT partition, segment, {_MEASURES} FROM {self._name} VERSION AS OF {version} "
            f"WHERE {where} GROUP BY partition, segment, path"
        )

    def _rows(self, sql: str) -> list[Measured]:
        return [row.asDict() for row in self._spark().sql(sql).collect()]

"""A table by name where it lies if that can be, and through Spark if not.

Both ways see the same versions, slices and rows, so one may take over from the other at any time,
also in the middle of a read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa

from ...engines.engine import BY_NAME, INLINE, Choice, chosen
from ...errors import (
    ColdTierAccessError,
    ColdTierRefusedError,
    ContradictionError,
    CorruptRecordError,
    ForeignTableError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
    NewerVersionError,
)
from ...values.record import OffsetAndTimestamp
from ...values.topic_partition import OffsetRange
from ..answers import RowGroupTimes
from ..record_batches import projection
from ..scan import FileScan, OrderedRows, ScanTask, Spacing
from ..schema import FILE_SCHEMA
from ..segment import SegmentFile
from ..store.storage import Storage
from ..store_errors import one_line
from ..table import ColdSnapshot, TimestampLookup
from .delta_actions import LogFile, NotDirectError, VersionGoneError
from .log_view import LogView
from .lookup import Measured
from .notes import Commit, Slice
from .runs import Run
from .spark_view import SparkView

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: After it could not be read where it lies, it is read through Spark for so long.
SPARK_FOR_S = 60.0

_HERE = Choice(INLINE, "a table by name is checked by this process")

#: What both ways would say.
_SAID_BY_BOTH = (ContradictionError, ForeignTableError, NewerVersionError)


class EitherView(TimestampLookup["EitherView"]):
    """See `LogView`; and what a `ColdTable` reads. Thread-safe.

    Args:
        log: None if there is no way but Spark.
        spark: None where there is none.
        name: of the table, for the log and errors.
    """

    def __init__(self, log: LogView | None, spark: SparkView | None, name: str) -> None:
        self.name = name
        self._log = log
        self._by_spark = spark
        self._reader = self  # for look-ups by time
        self._has_worked = False
        self._again_s = 0.0  # by the monotonic clock
        self.by_spark_because = "" if log is not None else "its catalog gives no other way"

    @property
    def lies_at(self) -> str | None:
        """The folder or URL that the table is read at; None while Spark reads it."""
        log = self._usable()
        return None if log is None else log.lies_at

    def _storage(self) -> Storage | None:
        """The place that the table is read at, as it is opened; None while Spark reads it."""
        found = self._directly(lambda log: log.storage())
        return found[0] if found else None

    # -- looking ---------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self._either(lambda view: view.exists())

    def news(self, topic_id: UUID, since: int) -> list[Commit] | None:
        return self._either(lambda view: view.news(topic_id, since))

    def history(self, topic_id: UUID, since: int) -> list[Commit]:
        return self._either(lambda view: view.history(topic_id, since))

    def properties(self) -> dict[str, str]:
        return self._either(lambda view: view.properties())

    def column_names(self) -> list[str]:
        return self._either(lambda view: view.column_names())

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]:
        return self._either(lambda view: view.measured_slices(version, slices))

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]:
        return self._either(lambda view: view.measured_segments(version, only))

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`. By Spark, each piece is a query: for many rows take
        `version_frame`. `columns` may also name ``delete_horizon``.
        """
        files, schema, at = list(files), projection(columns), start
        names = list(dict.fromkeys([*schema.names, "offset"]))
        renewed_at = -1
        while (log := self._usable()) is not None:
            try:
                for batch in log.read(files, at, end, names):
                    yield batch.select(schema.names)
                    at = batch.column("offset")[-1].as_py() + 1
                self._succeeded()
                return
            except (LakelogError, NotDirectError) as error:
                if isinstance(error, ColdTierAccessError) and renewed_at < at:
                    renewed_at = at
                    log.renew()
                    continue
                self._give_up(error)
        yield from self._of_spark().read(files, at, end, columns)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        """See `ColdRows.with_keys`. A query of Spark's would cost what reading costs."""
        files = list(files)
        found = self._directly(lambda log: log.with_keys(files, start, end, keys))
        return found[0] if found else [OffsetRange(start, end)]

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        """See `ColdRows.row_groups`. Spark does not show files."""
        files = list(files)
        found = self._directly(lambda log: log.row_groups(files, start, end))
        return found[0] if found else []

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `SegmentReader.first_at_or_after`; files never share offsets here."""
        files = list(files)
        return self._either(lambda view: view.first_at_or_after(files, timestamp_ms, from_offset))

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:
        files = list(files)
        return self._either(lambda view: view.newest(files, from_offset))

    # -- where it lies alone ---------------------------------------------------------------------

    def newest_files(self, partition: int) -> Sequence[SegmentFile]:
        """The data files of the newest version that was seen; see `ColdTable.data_files`."""
        found = self._directly(lambda log: log.data_files(partition))
        return found[0] if found else self._refuse_files()

    def _map_files(
        self,
        function: Callable[[Any, T], R],
        tasks: Sequence[T],
        files_of: Callable[[T], Iterable[SegmentFile]],
    ) -> Iterator[R]:
        for task in tasks:
            if not all(isinstance(file, LogFile) for file in files_of(task)):
                raise InvalidArgumentError(
                    f"what is known of the files of {self.name} are slices of them, which cannot "
                    "be looked at one by one. Read its records, or look at DESCRIBE DETAIL and "
                    "DESCRIBE HISTORY"
                )
            found = self._directly(lambda log, task=task: log.map_file(function, task))  # type: ignore[misc]
            yield found[0] if found else self._refuse_files()

    def _refuse_files(self) -> NoReturn:
        raise InvalidArgumentError(
            f"the files of {self.name} are not to be seen, as it is read through Spark: "
            f"{self.by_spark_because}. Read its records, or look at DESCRIBE DETAIL and DESCRIBE "
            "HISTORY"
        )

    # -- all rows --------------------------------------------------------------------------------

    def map(
        self,
        function: Callable[[Any, T], R],
        tasks: Sequence[T],
        *,
        files_of: Callable[[T], Iterable[SegmentFile]],
        columns: Sequence[str] | None,
    ) -> Iterator[R]:
        """See `ColdTable.map`: without columns, over `data_files`, in this process."""
        if columns is None:
            return self._map_files(function, tasks, files_of)
        if tasks:
            chosen(BY_NAME)
        return self._of_spark().map(function, tasks, files_of, columns)

    def scan(self, snapshot: ColdSnapshot, tasks: Sequence[ScanTask]) -> Iterator[FileScan]:
        """See `ColdTable.scan`: in this process, slices that follow each other at once."""
        if tasks:
            chosen(_HERE)
        for some in _together(tasks):
            look = partial(_scanned, version=snapshot.version, tasks=some)
            try:
                scans = self._either(look)
            except MissingFileError as error:  # nobody has its version any more
                scans = [FileScan(task.file, flaw=error) for task in some]
            yield from scans

    def spacing(
        self,
        snapshot: ColdSnapshot,
        files: Sequence[SegmentFile],
        explained: Sequence[OffsetRange],
    ) -> Spacing:
        run = Run.whole(files)
        found = self._either(lambda view: list(view.rows(snapshot.version, run, ["offset"])))
        offsets = (batch.column("offset").to_numpy() for batch in found)
        return Spacing.of(np.concatenate([np.empty(0, np.int64), *offsets]), explained)

    # -- which -----------------------------------------------------------------------------------

    def _of_spark(self) -> SparkView:
        if self._by_spark is None:
            self._refuse()
        return self._by_spark

    def _either(self, look: Callable[[LogView | SparkView], T]) -> T:
        found = self._directly(look)
        return found[0] if found else look(self._of_spark())

    def _directly(self, look: Callable[[LogView], T]) -> tuple[T] | tuple[()]:
        """What there is to see where it lies; nothing if Spark must be asked."""
        is_renewed = False
        while (log := self._usable()) is not None:
            try:
                answer = look(log)
                self._succeeded()
                return (answer,)
            except (LakelogError, NotDirectError) as error:
                if isinstance(error, ColdTierAccessError) and not is_renewed:
                    is_renewed = True
                    log.renew()
                    continue
                self._give_up(error)
        return ()

    def _usable(self) -> LogView | None:
        return None if self._log is None or time.monotonic() < self._again_s else self._log

    def _succeeded(self) -> None:
        self._has_worked, self.by_spark_because = True, ""

    def _give_up(self, error: Exception) -> None:
        """Have Spark asked from now on.

        Raises:
            LakelogError: the error, where Spark would not help, or there is none.
        """
        if isinstance(error, LakelogError):
            passes = error.retriable and self._has_worked
            if passes or self._by_spark is None or isinstance(error, _SAID_BY_BOTH):
                raise error
        because = one_line(error)
        if because != self.by_spark_because:
            logger.info("%s is read through Spark, not where it lies: %s", self.name, because)
        self.by_spark_because = because
        if self._by_spark is not None:
            self._again_s = time.monotonic() + SPARK_FOR_S
            return
        if isinstance(error, VersionGoneError):
            raise MissingFileError(
                f"rows of {self.name} can no longer be read: {because}", path=self.name
            ) from error
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ColdTierRefusedError(
            f"{self.name} can be read by Spark's own reader alone, and there is none here: "
            f"{self.by_spark_because}",
            path=self.name,
        )


def _together(tasks: Iterable[ScanTask]) -> list[list[ScanTask]]:
    """The slices of a segment that follow each other: a data file may have rows of all of them."""
    found: list[list[ScanTask]] = []
    for task in sorted(tasks, key=lambda task: (task.file.segment, task.file.start_offset)):
        last = found[-1][-1].file if found else None
        here = (task.file.segment, task.file.start_offset)
        if last is not None and (last.segment, last.end_offset) == here:
            found[-1].append(task)
        else:
            found.append([task])
    return found


def _scanned(view: LogView | SparkView, version: int, tasks: Sequence[ScanTask]) -> list[FileScan]:
    """What the rows of slices that follow each other are like; damage is part of the answer.

    Where some cannot be read, ever fewer slices are, until it is known which they are.
    """
    try:
        return _scanned_at_once(view, version, tasks)
    except (MissingFileError, CorruptRecordError) as error:
        if len(tasks) == 1:
            return [FileScan(tasks[0].file, flaw=error)]
    half = len(tasks) // 2
    return [
        *_scanned(view, version, tasks[:half]),
        *_scanned(view, version, tasks[half:]),
    ]


def _scanned_at_once(
    view: LogView | SparkView, version: int, tasks: Sequence[ScanTask]
) -> list[FileScan]:
    files = [task.file for task in tasks]
    rows = [OrderedRows(task.explained) for task in tasks]
    starts = np.array([file.start_offset for file in files[1:]], np.int64)
    for batch in view.rows(version, Run.whole(files), FILE_SCHEMA.names):
        if batch.column("offset").null_count or batch.column("timestamp").null_count:
            path = files[0].path
            raise CorruptRecordError(
                f"{path} holds rows without an offset or a timestamp", path=path
            )
        offsets = batch.column("offset").to_numpy()
        times_us = batch.column("timestamp").cast(pa.int64()).to_numpy()
        edges = [0, *np.searchsorted(offsets, starts).tolist(), len(offsets)]
        for one, (low, high) in zip(rows, pairwise(edges), strict=True):
            if low < high:
                one.add(offsets[low:high], times_us[low:high])
    return [
        FileScan(file, records=one.records, found=one.extent, spacing=one.spacing)
        for file, one in zip(files, rows, strict=True)
    ]

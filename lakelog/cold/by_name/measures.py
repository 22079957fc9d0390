"""What tasks measure of the rows they write, sent to the driver beside those rows.

A commit's slices have to be measured: how many records, which offsets, how old and how large. The
task that copies a range sees every row of it, so it writes the measure into one more column,
`MEASURE`: text in the last row of its range, null in all others. An observation picks these texts
up while Spark writes, and the column goes no further. So no query reads back what was just written.

Not every Spark passes on an observation from inside Delta's write. One that arrives is trusted only
if it counts as many records as the commit's own metrics do. Otherwise a query measures.

Runs on: executor up to `RangeMeasure`, driver from `Measuring` on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace

from ...base import compute as pc
from ...values.value_ddl import VALUE_ERROR
from .notes import Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

#: A column beside the table's own; no table keeps it.
MEASURE = "lakelog measure"

#: An observation arrives over the driver's listener bus within milliseconds, or never.
WAIT_S = 5.0


class RangeMeasure(Struct, frozen=True):
    """What the rows of one range are like. A task that is run again measures the same."""

    number: int  # of the range among those of its commit
    records: int = 0
    first: int = -1  # offsets
    last: int = -1
    min_timestamp_us: int = 2**63 - 1
    max_timestamp_us: int = -(2**63)
    size_bytes: int = 0  # in memory
    unparsed: int = 0  # records with a value_error

    def and_of(self, rows: pa.RecordBatch) -> RangeMeasure:
        """With the next rows added, in offset order; at least one row."""
        times_us = pc.min_max(rows.column("timestamp").cast(pa.int64())).as_py()
        offsets = rows.column("offset")
        errors = 0
        if VALUE_ERROR in rows.schema.names:
            errors = rows.num_rows - rows.column(VALUE_ERROR).null_count
        return replace(
            self,
            records=self.records + rows.num_rows,
            first=self.first if self.records else offsets[0].as_py(),
            last=offsets[-1].as_py(),
            min_timestamp_us=min(self.min_timestamp_us, times_us["min"]),
            max_timestamp_us=max(self.max_timestamp_us, times_us["max"]),
            size_bytes=self.size_bytes + rows.nbytes,
            unparsed=self.unparsed + errors,
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def measured(number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a range, each batch with `MEASURE`. Holds back at most one batch."""
    measure = RangeMeasure(number)
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None:
            yield _with_text(held, None)
        measure = measure.and_of(batch)
        held = batch
    if held is not None:
        yield _with_text(held, measure.to_json())


def _with_text(rows: pa.RecordBatch, last: str | None) -> pa.RecordBatch:
    texts = pa.nulls(rows.num_rows, pa.string())
    if last is not None:
        texts = pa.concat_arrays([texts[1:], pa.array([last])])
    return pa.RecordBatch.from_arrays([*rows.columns, texts], names=[*rows.schema.names, MEASURE])


class Measuring:
    """Listens to the tasks of one commit.

    Args:
        added: the slice that each range becomes, in their order.
    """

    def __init__(self, added: Sequence[Slice]) -> None:
        from pyspark.sql import Observation

        self._added = added
        self._observation = Observation()
        self._found: dict[str, Any] = {}
        self._waiting: Thread | None = None
        self._measures: dict[int, RangeMeasure] | None = None

    def observe(self, rows: DataFrame) -> DataFrame:
        """The same rows, observed if this Spark can."""
        from pyspark.sql.functions import collect_list, concat_ws

        # One text, since not every version's Connect knows how to send an array.
        texts = concat_ws("\n", collect_list(MEASURE)).alias(MEASURE)
        try:
            return rows.observe(self._observation, texts)
        except Exception as error:  # the rows matter more than their measures
            logger.debug("the tasks' measures cannot be listened to: %s", error)
            return rows

    @property
    def is_deaf(self) -> bool:
        """Whether the observation is still awaited, though it should have come at once."""
        return self._waiting is not None and self._waiting.is_alive()

    def unparsed(self) -> dict[int, int] | None:
        """By partition, how many records have a ``value_error``; None: not known."""
        if self._measures is None:
            return None
        unparsed = {one.partition: 0 for one in self._added}
        for number, measure in self._measures.items():
            unparsed[self._added[number].partition] += measure.unparsed
        return unparsed

    def slices(self, metrics: Mapping[str, str]) -> list[Slice] | None:
        """The added slices, measured; None if a query has to measure. Call it after the write.

        Args:
            metrics: the commit's own, from the table's history.
        """
        self._wait()
        measures = parsed(str(self._found.get(MEASURE, "")), len(self._added))
        rows, size_bytes = metrics.get("numOutputRows"), metrics.get("numOutputBytes")
        if measures is None or rows is None or size_bytes is None:
            return None
        if sum(one.records for one in measures.values()) != int(rows):
            return None
        self._measures = measures
        return known(self._added, measures, int(size_bytes))

    def _wait(self) -> None:
        """Classic Spark waits for ever for a missing observation; Connect does not wait at all."""
        if self._waiting is None:

            def take() -> None:
                try:
                    self._found.update(self._observation.get)
                except Exception as error:  # a query will measure
                    logger.debug("the tasks' measures did not come: %s", error)

            self._waiting = Thread(target=take, name="lakelog-measures", daemon=True)
            self._waiting.start()
        self._waiting.join(WAIT_S)


def parsed(texts: str, ranges: int) -> dict[int, RangeMeasure] | None:
    """The tasks' measures by number of the range; None if two of one range differ.

    A range without rows is not among them.
    """
    found: dict[int, RangeMeasure] = {}
    for text in filter(None, texts.split("\n")):
        measure = RangeMeasure(**json.loads(text))
        if not 0 <= measure.number < ranges or found.get(measure.number, measure) != measure:
            return None
        found[measure.number] = measure
    return found


def known(
    added: Sequence[Slice], measures: Mapping[int, RangeMeasure], size_bytes: int
) -> list[Slice]:
    """The slices with the measures of their rows.

    Each has its share of the commit's bytes, by what the rows take in memory.
    """
    in_memory = max(1, sum(one.size_bytes for one in measures.values()))
    slices, before = [], 0
    for number, one in enumerate(added):
        measure = measures.get(number)
        if measure is None:
            slices.append(replace(one, records=0, first=one.start_offset, size_bytes=0))
            continue
        # Rounded so that the shares add up to the whole.
        until = before + measure.size_bytes
        share = size_bytes * until // in_memory - size_bytes * before // in_memory
        before = until
        slices.append(
            replace(
                one,
                records=measure.records,
                first=measure.first,
                last=measure.last,
                min_timestamp_ms=measure.min_timestamp_us // 1000,
                max_timestamp_ms=measure.max_timestamp_us // 1000,
                size_bytes=share,
            )
        )
    return slices

"""Metrics as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ...base.arrow_columns import no_rows, numbers, repeated, texts
from ...base.metrics import Kind, Measured, Sample

#: A row for each sample. A histogram has a row for each of its buckets (``…_bucket``, with the
#: upper bound as label ``le``: how many observations are at most so large), one for their sum
#: (``…_sum``) and one for their count (``…_count``), as Prometheus has them.
METRICS_SCHEMA = pa.schema(
    [
        pa.field("metric", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),  # gauge, counter or histogram
        pa.field("unit", pa.string(), nullable=False),
        pa.field("labels", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)


def metrics_table(measured: Iterable[Measured]) -> pa.Table:
    """All samples, in rows of `METRICS_SCHEMA`, in the order given."""
    parts = [
        _rows(one, name, names, samples)
        for one in measured
        for name, names, samples in samples_of(one)
        if samples
    ]
    return pa.concat_tables([no_rows(METRICS_SCHEMA), *parts])


def samples_of(
    measured: Measured,
) -> list[tuple[str, tuple[str, ...], Sequence[Sample]]]:
    """The samples by their name, with the names of their labels; see `METRICS_SCHEMA`."""
    metric = measured.metric
    if metric.kind is not Kind.HISTOGRAM:
        return [(metric.name, metric.labels, measured.samples)]
    buckets = [
        ((*labels, bound_text(bound)), float(count))
        for labels, found in measured.histograms
        for bound, count in found.up_to(metric.buckets)
    ]
    sums = [(labels, found.sum) for labels, found in measured.histograms]
    counts = [(labels, float(found.count)) for labels, found in measured.histograms]
    return [
        (f"{metric.name}_bucket", (*metric.labels, "le"), buckets),
        (f"{metric.name}_sum", metric.labels, sums),
        (f"{metric.name}_count", metric.labels, counts),
    ]


def bound_text(bound: float) -> str:
    """An upper bound as Prometheus writes it."""
    return "+Inf" if bound == float("inf") else repr(bound)


def _rows(
    measured: Measured, name: str, names: tuple[str, ...], samples: Sequence[Sample]
) -> pa.Table:
    count, width = len(samples), len(names)
    labels = pa.MapArray.from_arrays(
        numbers(pa.int32(), range(0, (count + 1) * width, width) if width else [0] * (count + 1)),
        repeated(names, count),
        texts([value for of_one, _ in samples for value in of_one]),
    )
    return pa.Table.from_arrays(
        [
            repeated([name], count),
            repeated([measured.metric.kind.value], count),
            repeated([measured.metric.unit], count),
            labels,
            numbers(pa.float64(), [value for _, value in samples]),
        ],
        schema=METRICS_SCHEMA,
    )

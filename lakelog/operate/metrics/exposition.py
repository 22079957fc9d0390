"""Metrics as prometheus-client has them; the one module that imports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...base.metrics.counts import COUNTS
from ...base.metrics.metric import Kind, Measured, Metric
from ...errors import MissingExtraError
from .table import samples_of

try:
    from prometheus_client import CollectorRegistry, start_http_server, write_to_textfile
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.samples import Sample as FamilySample
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "metrics are shown to Prometheus by prometheus-client, which is not installed; "
        "pip install 'lakelog[metrics]'"
    ) from error

__all__ = ["Collector", "registry_of", "start_http_server", "write_textfile"]


class Collector:
    """What prometheus-client collects from: ``REGISTRY.register(Collector())``.

    Args:
        measured: gives what is exposed, and never raises; default: what this process has counted.
        metrics: those that it may give.
    """

    def __init__(
        self,
        measured: Callable[[], Iterable[Measured]] = COUNTS.measured,
        metrics: Iterable[Metric] | None = None,
    ) -> None:
        self._measured = measured
        self._metrics = tuple(metrics or (one.metric for one in COUNTS.measured()))

    def describe(self) -> Iterator[Family]:
        """The families, without samples."""
        return (_family(Measured(metric)) for metric in self._metrics)

    def collect(self) -> Iterator[Family]:
        """The families, also those without samples: what is not there now is known all the same."""
        return map(_family, self._measured())


def registry_of(collector: Collector) -> CollectorRegistry:
    """A registry of that collector alone."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def write_textfile(path: str | Path, registry: CollectorRegistry) -> None:
    """Writes all of it to a file, at once or not at all, for node_exporter's textfile collector.

    Raises:
        OSError: it cannot be written.
    """
    write_to_textfile(str(path), registry)


def _family(measured: Measured) -> Family:
    metric = measured.metric
    name = metric.name.removesuffix("_total") if metric.kind is Kind.COUNTER else metric.name
    family = Family(name, metric.help, metric.kind.value)
    family.samples = [
        FamilySample(sample, dict(zip(names, labels, strict=True)), value)
        for sample, names, samples in samples_of(measured)
        for labels, value in samples
    ]
    return family

"""Metrics as prometheus-client has them, which this module alone imports: by HTTP or in a file."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

from ...base.address import Address
from ...base.metrics import COUNTS, OF_PROCESS, Kind, Measured, Metric
from ...engines.threads import Workers
from ...errors import InvalidArgumentError, MissingExtraError
from . import of_log as m
from .of_log import OF_LOG
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


#: Every metric that lakelog shows, in the order in which they are shown.
METRICS: tuple[Metric, ...] = (*OF_LOG, *OF_PROCESS)

#: How long an answer may take: Prometheus gives up after 10 s.
WITHIN_S = 8.0

#: Of these, how long tables are waited for; what comes later is in the next answer.
COLD_WITHIN_S = 5.0

#: Who asks so soon after another gets the same answer.
LASTS_S = 2.0


class Scrapes:
    """Looks at a log for whoever asks, in a thread that may hang; one look at a time. Thread-safe.

    Args:
        look: gives what there is to measure; told how long to wait for tables.
        tell: called with what a look failed with, when that changes; with "" when it went well
            again.
        within_s, lasts_s: see `WITHIN_S` and `LASTS_S`.
    """

    def __init__(
        self,
        look: Callable[[float], list[Measured]],
        tell: Callable[[str], None] = lambda error: None,
        *,
        within_s: float = WITHIN_S,
        lasts_s: float = LASTS_S,
    ) -> None:
        self._look = look
        self._tell = tell
        self._within_s = within_s
        self._lasts_s = lasts_s
        self._workers = Workers("lakelog-scrape")
        self._lock = threading.Lock()
        self._under_way: Future[list[Measured]] | None = None
        self._began_s = 0.0
        self._error = ""

    def measured(self) -> list[Measured]:
        """What there is to measure, and what this process has counted. Raises nothing of a log's.

        If the log cannot be looked at in time, ``lakelog_up`` is 0.
        """
        with self._lock:
            asked = self._under_way
            is_old = time.monotonic() - self._began_s >= self._lasts_s
            if asked is None or (asked.done() and is_old):
                self._began_s = time.monotonic()
                asked = self._under_way = self._workers.ask(self._look_once)
        try:
            found = asked.result(self._within_s)
            self._say("")
        except FutureTimeoutError:
            found = self._down("TimeoutError", f"no answer within {self._within_s:g} s")
        except Exception as error:
            found = self._down(type(error).__name__, str(error))
        return COUNTS.beside(found)

    def _look_once(self) -> list[Measured]:
        return self._look(min(COLD_WITHIN_S, self._within_s / 2))

    def _down(self, kind: str, why: str) -> list[Measured]:
        self._say(f"{kind}: {why}")
        return [Measured(m.UP, [((), 0)]), Measured(m.LAST_ERROR, [((kind,), 1)])]

    def _say(self, error: str) -> None:
        with self._lock:
            before, self._error = self._error, error
        if before != error:
            self._tell(error)


class MetricsServer:
    """Listens from when it is made until it is closed; answers in threads that delay no exit.

    Raises:
        InvalidArgumentError: the address is taken, or none of this machine's.
    """

    def __init__(self, address: Address, collector: Collector) -> None:
        registry = registry_of(collector)
        try:
            self._server, _ = start_http_server(address.port, address.host, registry)
        except OSError as error:
            raise _cannot_listen(address, error) from error
        self.address = Address(address.host, self._server.server_port)

    def close(self) -> None:
        """Takes no more requests."""
        self._server.shutdown()
        self._server.server_close()


def _cannot_listen(address: Address, error: OSError) -> InvalidArgumentError:
    if error.errno == errno.EADDRINUSE:
        why = "something listens there already. Stop it, or give another port"
    elif error.errno in (errno.EACCES, errno.EPERM):
        why = "this user may not. Give a port above 1023"
    else:
        why = f"{error.strerror or error}. Give an address of this machine's, such as 127.0.0.1"
    return InvalidArgumentError(f"cannot listen at {address}:\n{why}", value=str(address))

"""What a gateway counts of its requests, and the spans that it makes of them."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from lakelog import Lakelog, tracing
from lakelog.base.metrics import (
    COUNTS,
    GATEWAY_CONNECTIONS,
    GATEWAY_REFUSED,
    GATEWAY_REQUEST_BYTES,
    GATEWAY_REQUEST_SECONDS,
    GATEWAY_RESPONSE_BYTES,
    Metric,
)
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.messages import ListOffsetsRequest, MetadataRequest
from lakelog.testing.eventually import eventually
from tests.gateway.raw_client import RawClient, frame
from tests.support.command_line import running


@pytest.fixture(autouse=True)
def counts() -> Iterator[None]:
    COUNTS.clear()
    yield
    COUNTS.clear()


def counted(metric: Metric) -> dict[tuple[str, ...], float]:
    (found,) = (one for one in COUNTS.measured() if one.metric is metric)
    return dict(found.samples)


def test_requests_are_counted_by_api(gateway: Gateway) -> None:
    asked = MetadataRequest(topics=None)
    with RawClient(gateway.bootstrap_servers) as client:
        for _ in range(3):
            client.ask(asked, 12)
        client.ask(ListOffsetsRequest(topics=[]), 7)
        eventually(lambda: counted(GATEWAY_CONNECTIONS) == {(): 1})
    eventually(lambda: counted(GATEWAY_CONNECTIONS) == {(): 0})
    (seconds,) = (one for one in COUNTS.measured() if one.metric is GATEWAY_REQUEST_SECONDS)
    taken = {labels: histogram.count for labels, histogram in seconds.histograms}
    assert taken == {("Metadata",): 3, ("ListOffsets",): 1}
    assert counted(GATEWAY_REQUEST_BYTES)[("Metadata",)] == 3 * (len(frame(asked, 12)) - 4)
    assert counted(GATEWAY_RESPONSE_BYTES)[("Metadata",)] > 3 * 20
    assert counted(GATEWAY_REFUSED) == {}


def test_what_is_no_request_is_counted(gateway: Gateway) -> None:
    with RawClient(gateway.bootstrap_servers) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        eventually(lambda: counted(GATEWAY_REFUSED) == {(): 1})


def test_requests_have_spans(lake: Lakelog) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracing.start(provider)
    try:
        with lake.gateway("127.0.0.1:0") as gateway, RawClient(gateway.bootstrap_servers) as client:
            client.ask(MetadataRequest(topics=None), 12)
    finally:
        tracing.stop()
    (span,) = kept.get_finished_spans()
    assert (span.name, span.kind) == ("Metadata", SpanKind.SERVER)
    assert span.attributes is not None
    assert span.attributes["messaging.client.id"] == "raw"


def test_prometheus_reads_them(redis_url: str, tmp_path: Path) -> None:
    place = ["--redis", redis_url, "--cold", str(tmp_path), "--engine", "inline"]
    listening = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
    with running(*place, "gateway", *listening) as process:
        assert process.stderr is not None
        metrics = process.stderr.readline().split(": ", 1)[1].strip()
        servers = process.stderr.readline().split("bootstrap.servers=")[1].strip()
        with RawClient(servers) as client:
            client.ask(MetadataRequest(topics=None), 12)

        def shown() -> str:
            with urllib.request.urlopen(metrics, timeout=30) as answer:
                text: str = answer.read().decode()
            return text

        counted = 'lakelog_gateway_request_seconds_count{api="Metadata"} 1.0'
        eventually(lambda: counted in shown(), said=shown)  # after the answer has gone out
        process.terminate()

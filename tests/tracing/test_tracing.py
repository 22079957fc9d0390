"""Spans as OpenTelemetry's own SDK keeps them, and what records carry of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes as conventions
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import SpanKind, StatusCode

from lakelog import Lakelog, TopicPartition, tracing
from lakelog.errors import LakelogError, UnknownTopicOrPartitionError
from lakelog.tracing.tracer import MOST_LINKS, context_of, links_of_batches

TP = TopicPartition("orders", 0)
SENT_MS = 1_700_000_000_000


class Spans:
    """What was made, by name."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def all(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.named(name)
        return found


def ids(span: ReadableSpan) -> tuple[int, int]:
    return (span.context.trace_id, span.context.span_id)


def linked(span: ReadableSpan) -> set[tuple[int, int]]:
    return {(link.context.trace_id, link.context.span_id) for link in span.links}


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    tracing.start(made.provider)
    yield made
    tracing.stop()


@pytest.fixture
def lake(redis_url: str, spans: Spans, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1, {"local.retention.ms": 0})
        yield lake


def test_a_record_carries_the_context_in_which_it_was_sent(lake: Lakelog, spans: Spans) -> None:
    own = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with lake.producer(linger_ms=60_000) as producer:
        producer.send("orders", b"a", key="k", headers={"x": b"y"})
        producer.send("orders", b"b", headers={"traceparent": own, "tracestate": b"v=1"})
    with lake.consumer(group_id="nightly", auto_offset_reset="earliest") as consumer:
        consumer.assign([TP])
        assert consumer.poll() or consumer.poll(5_000)
        assert not consumer.poll()
        consumer.commit()
    lake.archive()
    ours, theirs = lake.log("orders").read(0).records()
    sent, appended, polled = (spans.one(f"{name} orders") for name in ("send", "append", "poll"))
    sent_ids, own_ids = ids(sent), (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
    assert ours.headers[0] == ("x", b"y")
    assert [name for name, _ in ours.headers] == ["x", "traceparent"]
    assert theirs.headers == (("traceparent", own), ("tracestate", b"v=1"))
    for record, expected in ((ours, sent_ids), (theirs, own_ids)):
        found = trace.get_current_span(context_of(record)).get_span_context()
        assert (found.trace_id, found.span_id) == expected
    assert linked(appended) == linked(polled) == {sent_ids, own_ids}
    assert {link.context.trace_state.get("v") for link in polled.links} == {None, "1"}
    committed = next(one for one in spans.named("commit orders") if one.kind is SpanKind.CLIENT)
    assert [one.kind for one in (sent, appended, polled)] == [
        SpanKind.PRODUCER,
        SpanKind.CLIENT,
        SpanKind.CLIENT,
    ]
    common = {
        conventions.MESSAGING_SYSTEM: "lakelog",
        conventions.MESSAGING_DESTINATION_NAME: "orders",
    }
    partition = {conventions.MESSAGING_DESTINATION_PARTITION_ID: "0"}
    group = {conventions.MESSAGING_CONSUMER_GROUP_NAME: "nightly"}
    two = {conventions.MESSAGING_BATCH_MESSAGE_COUNT: 2}
    client = {conventions.MESSAGING_CLIENT_ID: "lakelog"}
    for span, name, kind, more in (
        (sent, "send", conventions.MessagingOperationTypeValues.CREATE, {}),
        (appended, "append", conventions.MessagingOperationTypeValues.SEND, partition | two),
        (
            polled,
            "poll",
            conventions.MessagingOperationTypeValues.RECEIVE,
            partition | two | group | client,
        ),
        (committed, "commit", conventions.MessagingOperationTypeValues.SETTLE, partition | group),
    ):
        operation = {
            conventions.MESSAGING_OPERATION_NAME: name,
            conventions.MESSAGING_OPERATION_TYPE: kind.value,
        }
        assert dict(span.attributes or {}) == common | operation | more


def test_what_is_sent_within_a_span_belongs_to_its_trace(lake: Lakelog, spans: Spans) -> None:
    tracer = spans.provider.get_tracer("a caller")
    with tracer.start_as_current_span("order") as order, lake.producer() as producer:
        producer.send("orders", b"a").result()
        assert spans.one("send orders").parent == order.get_span_context()
        lake.archive()
    archived = spans.one("archive orders")
    assert archived.parent == order.get_span_context()
    steps = [spans.one(f"{name} orders") for name in ("plan", "copy", "commit")]
    assert [one.parent for one in steps] == [archived.context] * 3
    assert {one.kind for one in [archived, *steps]} == {SpanKind.INTERNAL}
    assert all(one.start_time <= one.end_time for one in [archived, *steps])  # type: ignore[operator]


def test_several_topics_are_archived_within_the_span_of_the_call(
    lake: Lakelog, spans: Spans
) -> None:
    lake.topics.create("others", 1)
    with lake.producer() as producer:
        for topic in ("orders", "others"):
            producer.send(topic, b"a")
    with spans.provider.get_tracer("a caller").start_as_current_span("nightly") as nightly:
        lake.archive()
    for topic in ("orders", "others"):
        assert spans.one(f"archive {topic}").parent == nightly.get_span_context()


@pytest.mark.parametrize("traces_records", [False, True])
def test_a_batch_is_one_span(lake: Lakelog, spans: Spans, traces_records: bool) -> None:
    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    rows = [{"value": b"a", "headers": [("x", b"1"), ("x", None)]}, {"value": b"b"}]
    rows += [{"value": b"c", "headers": {"traceparent": own}}, {"value": b"d"}]
    with lake.producer(trace_batch_records=traces_records) as producer:
        producer.send_batch("orders", rows)
    headers = [record.headers for record in lake.log("orders").read(0).records()]
    sent, appended = spans.one("send orders"), spans.one("append orders")
    context = sent.context
    made = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    added = (("traceparent", made.encode()),) if traces_records else ()
    theirs = (("traceparent", own.encode()),)
    assert headers == [(("x", b"1"), ("x", None), *added), added, theirs, added]
    assert sent.kind is (SpanKind.PRODUCER if traces_records else SpanKind.CLIENT)
    assert (sent.attributes or {})["messaging.batch.message_count"] == 4
    own_ids = (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
    assert linked(sent) == {own_ids}
    assert linked(appended) == {ids(sent), own_ids}


def test_a_poll_of_many_links_to_as_many_as_are_kept(lake: Lakelog, spans: Spans) -> None:
    with lake.producer(linger_ms=60_000) as producer:
        for number in range(MOST_LINKS + 20):
            producer.send("orders", str(number))
    with lake.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TP])
        polled = consumer.poll_arrow(5_000)[TP].slice(5)
        consumer.seek(TP, 3)
        next(consumer)
    first, one = spans.named("poll orders")
    sent = [ids(span) for span in spans.named("send orders")]
    assert polled.num_rows == MOST_LINKS + 15
    assert linked(first) == set(sent[:MOST_LINKS])
    assert linked(one) == {sent[3]}
    found = links_of_batches([polled])  # of a slice
    assert [link.context.span_id for link in found] == [span_id for _, span_id in sent[5:133]]


def test_a_failure_is_told_by_its_class_alone(lake: Lakelog, spans: Spans) -> None:
    with lake.producer() as producer, pytest.raises(UnknownTopicOrPartitionError):
        producer.send("nothing", b"a", key="secret key")
    lake.topics.alter("orders", {"max.message.bytes": 100})
    with lake.producer() as producer, pytest.raises(LakelogError):
        producer.send("orders", b"secret value " * 100).result()
    failed = spans.one("send nothing")
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})[ERROR_TYPE] == "lakelog.errors.UnknownTopicOrPartitionError"
    assert not any("secret" in span.to_json() for span in spans.all())


def test_without_the_setting_there_is_no_span_and_no_header(redis_url: str, tmp_path: Path) -> None:
    made = Spans()
    tracing.start(made.provider)
    tracing.stop()
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1)
        with lake.producer() as producer:
            producer.send("orders", b"a")
            producer.send_batch("orders", [b"b"])
        lake.archive()
        assert [record.headers for record in lake.log("orders").read(0).records()] == [(), ()]
    assert not made.all()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("true", "MissingExtraError: spans are made by OpenTelemetry's API"),
        ("yes", "InvalidConfigError: the environment variable LAKELOG_TRACING='yes'"),
        ("false", "opened"),
    ],
)
def test_the_environment_asks_for_it_and_the_package_may_be_missing(
    redis_url: str, tmp_path: Path, setting: str, said: str
) -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"  # as if it were not installed
        "from lakelog import Lakelog, LakelogError\n"
        "try:\n"
        f"    with Lakelog.connect({redis_url!r}, {str(tmp_path)!r}, engine='inline'):\n"
        "        print('opened')\n"
        "except LakelogError as error:\n"
        "    print(f'{type(error).__name__}: {error}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"LAKELOG_TRACING": setting, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(said)

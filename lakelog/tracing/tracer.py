"""What makes spans, named as OpenTelemetry's conventions for messaging have it.

| span    | kind     | type    | a span of                                    | linked to          |
|---------|----------|---------|----------------------------------------------|--------------------|
| send    | PRODUCER | create  | a record that `Producer.send` took           |                    |
| send    | CLIENT   | send    | a `Producer.send_batch`; PRODUCER where its  | contexts that its  |
|         |          |         | context goes into the records' headers       | records came with  |
| append  | CLIENT   | send    | a round trip to Redis, also a repeated one   | its records' sends |
| poll    | CLIENT   | receive | a poll that gave records, or failed          | its records' sends |
| commit  | CLIENT   | settle  | a commit of a group's offsets; of a share    |                    |
|         |          |         | group: acknowledge                           |                    |
| archive | INTERNAL |         | what one commit archives; within it plan,    |                    |
|         |          |         | copy and commit, INTERNAL too                |                    |
| an API  | SERVER   |         | a request of a Kafka client to a gateway     |                    |

A span has names and numbers alone: no key, value, header or URL, and of an error its class, since
messages quote what they are about.

Source: OpenTelemetry's semantic conventions for messaging spans and for Kafka, 1.41.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import pyarrow as pa

from ..errors import MissingExtraError
from ..values.record import Record, RecordRows
from ..values.topic_partition import TopicPartition
from ..version import __version__
from .headers import TRACEPARENT, Pair, rows_with_context

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "spans are made by OpenTelemetry's API, which is not installed; "
        "pip install 'lakelog[tracing]', or unset LAKELOG_TRACING"
    ) from error

T = TypeVar("T")
Rows = dict[TopicPartition, list[RecordRows]]
Records = dict[TopicPartition, list[Record]]
Attributes = Mapping[str, "str | int"]
Links = Sequence[Link]
#: Of a poll: the partitions of its records, how many these are, and what their sends link to.
Seen = tuple[Collection[TopicPartition], int, Links]

#: What an SDK keeps of a span's links by default (OTEL_SPAN_LINK_COUNT_LIMIT).
MOST_LINKS = 128

# The conventions' own propagator, whatever the process's global one: that may add baggage, and what
# a caller keeps there has no business in a log.
_PROPAGATOR = TraceContextTextMapPropagator()


class Tracer:
    """Makes the spans of one process. Thread-safe.

    Args:
        provider: see `start`.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("lakelog", __version__, provider)

    # -- producers -----------------------------------------------------------------------------

    def send(self, topic: str, take: Callable[[Sequence[tuple[str, bytes]]], T]) -> T:
        """The span of one record.

        Args:
            take: takes the record with these headers beside its own.
        """
        with self._span("send", "create", SpanKind.PRODUCER, topic) as span:
            return take(_headers(span))

    def send_batch(
        self,
        topic: str,
        records: int,
        given: Links,
        send: Callable[[Sequence[tuple[str, bytes]], Links], T],
        *,
        is_creation: bool,
    ) -> T:
        """The span of a batch of records.

        Args:
            given: contexts that came with its records.
            send: called with the headers of the span's context, and with what the appends of the
                records link to.
            is_creation: whether these headers go into the records.
        """
        kind = SpanKind.PRODUCER if is_creation else SpanKind.CLIENT
        count = {"messaging.batch.message_count": records}
        with self._span("send", "send", kind, topic, count, given) as span:
            return send(_headers(span), [*_valid(span), *given][:MOST_LINKS])

    @contextmanager
    def append(
        self, topic_partitions: Collection[TopicPartition], records: int, links: Links
    ) -> Iterator[Appending]:
        """The span of one round trip, which may be about several partitions."""
        count = _of(topic_partitions) | {"messaging.batch.message_count": records}
        topic = _one(tp.topic for tp in topic_partitions)
        with self._span(
            "append", "send", SpanKind.CLIENT, topic, count, links[:MOST_LINKS]
        ) as span:
            yield Appending(span)

    @staticmethod
    def links_of(headers: Iterable[Iterable[Pair]]) -> Links:
        """See `links_of`."""
        return links_of(headers)

    # -- consumers -----------------------------------------------------------------------------

    def poll(self, group_id: str | None, client_id: str, poll: Callable[[], Rows]) -> Rows:
        """The span of a poll that gives records, as rows; without any there is none."""
        return self._poll(group_id, client_id, poll, _seen_in_rows)

    def poll_records(
        self, group_id: str | None, client_id: str, poll: Callable[[], Records]
    ) -> Records:
        """As `poll`, of records."""
        return self._poll(group_id, client_id, poll, _seen_in_records)

    def poll_record(
        self, group_id: str | None, client_id: str, records: Iterator[Record]
    ) -> Record:
        """As `poll`, of the next record of an iteration.

        Raises:
            StopIteration: none came.
        """
        return self._poll(group_id, client_id, lambda: next(records), _seen_in_record)

    def _poll(
        self,
        group_id: str | None,
        client_id: str,
        poll: Callable[[], T],
        seen: Callable[[T], Seen],
    ) -> T:
        started_ns = time.time_ns()
        try:
            polled = poll()
        except Exception as error:
            if not isinstance(error, StopIteration):
                self._polled(started_ns, group_id, client_id, ((), 0, ()), error)
            raise
        found = seen(polled)
        if found[1]:
            self._polled(started_ns, group_id, client_id, found)
        return polled

    def _polled(
        self,
        started_ns: int,
        group_id: str | None,
        client_id: str,
        seen: Seen,
        error: BaseException | None = None,
    ) -> None:
        topic_partitions, records, links = seen
        attributes = _of(topic_partitions) | _of_group(group_id)
        attributes |= {"messaging.client.id": client_id, "messaging.batch.message_count": records}
        topic = _one(tp.topic for tp in topic_partitions)
        with self._span(
            "poll", "receive", SpanKind.CLIENT, topic, attributes, links, started_ns
        ) as span:
            if error is not None:
                failed(span, error)

    @contextmanager
    def settle(
        self, operation: str, group_id: str | None, topic_partitions: Collection[TopicPartition]
    ) -> Iterator[Span]:
        """The span of how far a group has come: ``commit``, or ``acknowledge`` of a share group."""
        attributes = _of(topic_partitions) | _of_group(group_id)
        topic = _one(tp.topic for tp in topic_partitions)
        with self._span(operation, "settle", SpanKind.CLIENT, topic, attributes) as span:
            yield span

    # -- archivers -----------------------------------------------------------------------------

    @contextmanager
    def archive(self, topic: str, partitions: int, started_ns: int) -> Iterator[Span]:
        """The span of what one commit archives, after it was planned.

        Args:
            started_ns: when the look at the tiers began that was planned on.
        """
        attributes: Attributes = {"lakelog.topic": topic, "lakelog.partitions": partitions}
        with self._work("archive", attributes, started_ns) as span:
            with self._work("plan", {"lakelog.topic": topic}, started_ns):
                pass
            yield span

    def step(self, name: str, topic: str) -> AbstractContextManager[Span]:
        """The span of a step of work on a topic."""
        return self._work(name, {"lakelog.topic": topic})

    # -- gateways ------------------------------------------------------------------------------

    def request(self, api: str, client_id: str) -> AbstractContextManager[Span]:
        """The span of a request of a Kafka client, or of several that are answered together."""
        attributes = {"messaging.system": "lakelog", "messaging.client.id": client_id}
        return self._current(api, SpanKind.SERVER, attributes, (), None)

    # -- how -----------------------------------------------------------------------------------

    @contextmanager
    def _span(
        self,
        operation: str,
        kind_of_operation: str,
        kind: SpanKind,
        topic: str | None,
        attributes: Attributes = {},  # noqa: B006, it is read only
        links: Links = (),
        started_ns: int | None = None,
    ) -> Iterator[Span]:
        named = {
            "messaging.system": "lakelog",
            "messaging.operation.name": operation,
            "messaging.operation.type": kind_of_operation,
        }
        if topic is not None:
            named["messaging.destination.name"] = topic
        name = operation if topic is None else f"{operation} {topic}"
        with self._current(name, kind, {**named, **attributes}, links, started_ns) as span:
            yield span

    def _work(
        self, name: str, attributes: Attributes, started_ns: int | None = None
    ) -> AbstractContextManager[Span]:
        name = f"{name} {attributes['lakelog.topic']}"
        return self._current(name, SpanKind.INTERNAL, attributes, (), started_ns)

    @contextmanager
    def _current(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        links: Links,
        started_ns: int | None,
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=attributes,
            links=links,
            start_time=started_ns,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                failed(span, error)
                raise


class Appending:
    """A round trip under way."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def answered(self, errors: Iterable[BaseException]) -> None:
        """Notes the first refusal, if there is any."""
        error = next(iter(errors), None)
        if error is not None:
            failed(self._span, error)


def failed(span: Span, error: BaseException) -> None:
    """Notes the class of an error; what it says may quote a record."""
    span.set_attribute("error.type", f"{type(error).__module__}.{type(error).__qualname__}")
    span.set_status(Status(StatusCode.ERROR))


def context_of(record: Record) -> Context:
    """The trace context that a record carries, to be the parent of what is made of it.

    Returns:
        What ``start_as_current_span(…, context=…)`` takes; an empty one if it carries none.
    """
    return _context(record.headers)


def links_of(headers: Iterable[Iterable[Pair]]) -> Links:
    """Links to the trace contexts in these records' headers, `MOST_LINKS` at most."""
    links: dict[tuple[int, int], Link] = {}
    for pairs in headers:
        if len(links) == MOST_LINKS:
            break
        for link in _valid(trace.get_current_span(_context(pairs))):
            links.setdefault((link.context.trace_id, link.context.span_id), link)
    return [*links.values()]


def _seen_in_rows(polled: Rows) -> Seen:
    batches = [rows.batch() for of_one in polled.values() for rows in of_one]
    return polled.keys(), sum(batch.num_rows for batch in batches), links_of_batches(batches)


def _seen_in_records(polled: Records) -> Seen:
    records = [record for of_one in polled.values() for record in of_one]
    return polled.keys(), len(records), links_of(record.headers for record in records)


def _seen_in_record(record: Record) -> Seen:
    return [TopicPartition(record.topic, record.partition)], 1, links_of([record.headers])


def links_of_batches(batches: Iterable[pa.RecordBatch | pa.Table]) -> Links:
    """As `links_of`, of tables with a column ``headers``."""
    rows: list[list[Pair]] = []
    for batch in batches:
        column = batch.column("headers")
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            if len(rows) < MOST_LINKS:
                rows += rows_with_context(chunk, MOST_LINKS)
    return links_of(rows)


def _context(headers: Iterable[Pair]) -> Context:
    carrier = {
        name: value.decode("ascii", "replace")
        for name, value in headers
        if value is not None and (name in _PROPAGATOR.fields)
    }
    empty = Context()  # not the caller's own
    return _PROPAGATOR.extract(carrier, empty) if TRACEPARENT in carrier else empty


def _headers(span: Span) -> list[tuple[str, bytes]]:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(span))
    return [(name, value.encode("ascii")) for name, value in carrier.items()]


def _valid(span: Span) -> Links:
    context = span.get_span_context()
    return [Link(context)] if context.is_valid else []


def _of(topic_partitions: Collection[TopicPartition]) -> dict[str, str | int]:
    if len(topic_partitions) != 1:
        return {}
    (topic_partition,) = topic_partitions
    return {"messaging.destination.partition.id": str(topic_partition.partition)}


def _of_group(group_id: str | None) -> dict[str, str | int]:
    return {} if group_id is None else {"messaging.consumer.group.name": group_id}


def _one(topics: Iterable[str]) -> str | None:
    found = set(topics)
    return found.pop() if len(found) == 1 else None

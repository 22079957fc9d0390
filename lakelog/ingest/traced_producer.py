"""A producer whose records carry the trace context in which they were sent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..tracing.headers import carries_context, with_context
from ..tracing.tracer import Tracer, links_of_batches
from .delivery import BatchMetadata, SendResult
from .given_records import as_columns
from .given_values import BytesLike, HeadersLike, as_headers
from .producer import Producer


class TracedProducer(Producer):
    """As `Producer`, which has no word of spans, so that one without them pays nothing.

    A record that comes with a context of its own keeps that.
    """

    def __init__(self, *given: Any, tracer: Tracer, **named: Any) -> None:
        super().__init__(*given, tracer=tracer, **named)
        self._tracer = tracer

    def send(
        self,
        topic: str,
        value: BytesLike,
        *,
        key: BytesLike = None,
        headers: HeadersLike = (),
        timestamp_ms: object = None,
        partition: int | None = None,
    ) -> SendResult:
        """See `Producer.send`."""
        given = as_headers(headers) if headers else []

        def take(context: HeadersLike) -> SendResult:
            return Producer.send(
                self,
                topic,
                value,
                key=key,
                headers=[*given, *context],
                timestamp_ms=timestamp_ms,
                partition=partition,
            )

        if carries_context(given):
            return take([])
        return self._tracer.send(topic, take)

    def send_batch(
        self, topic: str, records: object, *, partition: int | None = None
    ) -> BatchMetadata:
        """See `Producer.send_batch`."""
        table, asked = as_columns(records, self._now_ms())
        is_creation = self._config.trace_batch_records

        def send(context: Any, links: Any) -> BatchMetadata:
            traced = _with_context(table, context) if is_creation and context else table
            return self._append_table(topic, traced, asked, partition, links)

        given = links_of_batches([table])
        return self._tracer.send_batch(topic, table.num_rows, given, send, is_creation=is_creation)


def _with_context(table: pa.Table, context: Any) -> pa.Table:
    column = table["headers"]
    chunks = [with_context(chunk, context) for chunk in column.chunks]
    place = table.schema.get_field_index("headers")
    return table.set_column(place, table.schema.field(place), pa.chunked_array(chunks, column.type))

"""Which records `consume` and `grep` are asked for, and how they are found."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .record_output import check_output
from .record_range import Spans, TypedRange, where_of
from .row_limit import RowLimit

if TYPE_CHECKING:
    import pyarrow as pa

    from ..read.topic_log import TopicLog
    from ..read.where import Where


class RecordQuery:
    """The options of a range, an expression, a form and a number, read once for any topics.

    Args:
        text: what records must match as well; None: nothing.

    Raises:
        InvalidArgumentError: options that cannot be read, or do not go together.
    """

    def __init__(self, arguments: argparse.Namespace, text: Where | None = None) -> None:
        from ..read.where import Always
        from ..read.where.expression import All

        check_output(arguments)
        self.limit = RowLimit(arguments.max)
        self.where = where_of(arguments)
        if text is not None:
            self.where = text if isinstance(self.where, Always) else All((self.where, text))
        self.range = TypedRange.of(arguments)
        self._partition = arguments.partition

    def partitions(self, log: TopicLog) -> list[int]:
        """Those that are asked for.

        Raises:
            UnknownTopicOrPartitionError: the topic has no such partition.
        """
        if self._partition is None:
            return list(range(log.topic.partitions))
        return [log.topic.partition(self._partition).partition]

    def spans(self, log: TopicLog) -> Spans:
        """See `TypedRange.spans`."""
        return self.range.spans(log, self.partitions(log))

    def found(self, log: TopicLog, *, merged: bool) -> Iterator[pa.Table]:
        """`FOUND` tables; over all topics no more records than ``--max`` says.

        Args:
            merged: in the order of time; else partition by partition.
        """
        spans = self.spans(log)
        for part in [spans] if merged else [{number: span} for number, span in spans.items()]:
            yield from self.limit.limited(log.search_ranges(part, self.where))

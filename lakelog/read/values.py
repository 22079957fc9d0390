"""Values as they were given, of records as both tiers store them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..config import DATA_KEYS
from ..encryption.of_topic import opening
from ..encryption.sealed_values import MAGIC, with_values
from ..errors import DecryptionError
from ..record import Fetched, FetchedTogether, TopicPartition
from ..topic import Topic


class Values:
    """Decrypts the values of a topic that are encrypted; leaves all others as they are.

    The topic's keys are asked for when the first such value comes, and looked up again when one
    comes that none of them opens: a reader may have opened the topic before its key was rotated, or
    before it had one.

    Args:
        topic: as the reader knows it.
        renewed: gives it as it is now.
        are_stored: leave all values as they are stored.
    """

    def __init__(
        self, topic: Topic, renewed: Callable[[Topic], Topic], *, are_stored: bool = False
    ) -> None:
        self._topic = topic
        self._renewed = renewed
        self.are_stored = are_stored

    def of_step(self, topic_partition: TopicPartition, step: Fetched) -> Fetched:
        """The step with its values as they were given.

        Raises:
            DecryptionError: one is not what was encrypted there.
            EncryptionKeyError: the key cannot be had here.
        """
        if self.are_stored or not step.records.num_rows:
            return step
        try:
            records = self._opened(step.records)
        except DecryptionError as error:
            raise _located(error, topic_partition, step.records) from None
        return step if records is step.records else replace(step, records=records)

    def of_steps(self, found: FetchedTogether) -> FetchedTogether:
        """As `of_step`, of several partitions' steps."""
        if self.are_stored or not found.records.num_rows:
            return found
        try:
            records = self._opened(found.records)
        except DecryptionError as error:
            place = int(np.searchsorted(found.ends, error.row or 0, side="right"))
            raise _located(error, found.topic_partitions[place], found.records) from None
        return found if records is found.records else replace(found, records=records)

    def _opened(self, records: pa.RecordBatch) -> pa.RecordBatch:
        keys, values = records.column("key"), records.column("value")
        if not self._topic.config.text(DATA_KEYS) and not (
            pc.any(pc.starts_with(values, MAGIC)).as_py() and self._look_again()
        ):
            return records
        sealed = opening(self._topic)
        if sealed is None:
            return records
        try:
            opened = sealed.open(keys, values)
        except DecryptionError:
            if not self._look_again():
                raise
            sealed = opening(self._topic)
            assert sealed is not None  # data keys are never taken away
            opened = sealed.open(keys, values)
        return with_values(records, opened)

    def _look_again(self) -> bool:
        """Whether the topic has other data keys by now."""
        known = self._topic.config.text(DATA_KEYS)
        self._topic = self._renewed(self._topic)
        return self._topic.config.text(DATA_KEYS) != known


def _located(
    error: DecryptionError, topic_partition: TopicPartition, records: pa.RecordBatch
) -> DecryptionError:
    """The error of a row, with the offset in its place."""
    offset = records.column("offset")[error.row or 0].as_py()
    message = error.message.replace(
        f"record {error.row} ", f"{topic_partition} at offset {offset} ", 1
    )
    return replace(error, message=message, topic_partition=topic_partition, offset=offset)

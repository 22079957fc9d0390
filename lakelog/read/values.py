"""Values as they were given, of records as both tiers store them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from msgspec.structs import replace

from ..codec.encryption.of_topic import opening
from ..codec.encryption.sealed_values import any_begins_sealed, with_values
from ..errors import DecryptionError
from ..values.config import DATA_KEYS
from ..values.record import Fetched
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition

#: Says of a row which record it is.
PlaceOf = Callable[[int], tuple[TopicPartition, int]]


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
        offsets = step.records.column("offset")
        records = self._of_records(
            step.records, lambda row: (topic_partition, offsets[row].as_py())
        )
        return step if records is step.records else replace(step, records=records)

    def of_columns(self, keys: pa.Array, values: pa.Array, place: PlaceOf) -> pa.Array:
        """As `of_step`, of two ``pa.binary()`` columns."""
        if self.are_stored or values.null_count == len(values):
            return values
        if not self._topic.config.text(DATA_KEYS) and not (
            any_begins_sealed(values) and self._look_again()
        ):
            return values
        sealed = opening(self._topic)
        if sealed is None:
            return values
        try:
            try:
                return sealed.open(keys, values)
            except DecryptionError:
                if not self._look_again():
                    raise
            sealed = opening(self._topic)
            assert sealed is not None  # data keys are never taken away
            return sealed.open(keys, values)
        except DecryptionError as error:
            raise _located(error, place) from None

    def _of_records(self, records: pa.RecordBatch, place: PlaceOf) -> pa.RecordBatch:
        values = records.column("value")
        opened = self.of_columns(records.column("key"), values, place)
        return records if opened is values else with_values(records, opened)

    def _look_again(self) -> bool:
        """Whether the topic has other data keys by now."""
        known = self._topic.config.text(DATA_KEYS)
        self._topic = self._renewed(self._topic)
        return self._topic.config.text(DATA_KEYS) != known


def _located(error: DecryptionError, place: PlaceOf) -> DecryptionError:
    """The error of a row, saying which record that is."""
    topic_partition, offset = place(error.row or 0)
    message = error.message.replace(
        f"record {error.row} ", f"{topic_partition} at offset {offset} ", 1
    )
    return error.changed(message=message, topic_partition=topic_partition, offset=offset)

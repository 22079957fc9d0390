"""What makes objects of the keys and values that a consumer reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from msgspec.structs import force_setattr

from ..errors import RecordDeserializationError
from ..values.record import Headers, Record
from ..values.topic_partition import TopicPartition


@runtime_checkable
class TopicDeserializer(Protocol):
    """Makes something of bytes that may depend on the topic and the headers, as kafka-python's."""

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """What the bytes stand for."""
        ...


Deserializer = Callable[[bytes], Any] | TopicDeserializer


class Deserializers:
    """Those of a consumer. A null stays None: no deserializer is asked for one."""

    def __init__(self, key: Deserializer | None, value: Deserializer | None) -> None:
        given = {"key": key, "value": value}
        self._of = {name: make for name, make in given.items() if make is not None}
        self.are_given = bool(self._of)

    def apply(
        self, records: list[Record]
    ) -> tuple[list[Record], RecordDeserializationError | None]:
        """Gives the records their objects.

        Returns:
            The records before the first that cannot be read, all if each can; and why it cannot.
        """
        if not self._of:
            return records, None
        for number, record in enumerate(records):
            for name, make in self._of.items():
                try:
                    made = _made(make, record, getattr(record, name))
                except Exception as error:
                    return records[:number], _failure(record, name, error)
                force_setattr(record, name, made)  # it is frozen for those who get it
        return records, None


def _made(make: Deserializer, record: Record, data: bytes | None) -> Any:
    if data is None:
        return None
    if isinstance(make, TopicDeserializer):
        return make.deserialize(record.topic, record.headers, data)
    return make(data)


def _failure(record: Record, name: str, error: Exception) -> RecordDeserializationError:
    failure = RecordDeserializationError(
        f"{name}_deserializer could not read the {name} of {record.topic}-{record.partition} at "
        f"offset {record.offset}: {error!r}. It comes again until you seek to "
        f"{record.offset + 1}, or until the deserializer reads it",
        topic_partition=TopicPartition(record.topic, record.partition),
        offset=record.offset,
    )
    failure.__cause__ = error
    return failure

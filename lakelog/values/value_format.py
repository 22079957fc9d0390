"""What the values of a topic are, and the schemas of them: as its settings say it."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

#: The formats that lakelog knows; others are entry points of the group ``lakelog.decoders``.
JSON, CONFLUENT, AVRO, MESSAGE_PACK, CBOR = "json", "confluent", "avro", "messagepack", "cbor"
FORMATS = (JSON, CONFLUENT, AVRO, MESSAGE_PACK, CBOR)

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}")


class Schema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema as a registry has it.

    Args:
        schema: its text.
        schema_type: ``AVRO``, ``PROTOBUF`` or ``JSON``.
        references: the texts of what it refers to, by name; what those refer to, too.
    """

    schema: str
    schema_type: str = "AVRO"
    references: dict[str, str] = {}


class ValueFormat(msgspec.Struct, frozen=True):
    """How the values of a topic are read.

    Args:
        schemas: ``lakelog.schemas``, as text: it travels with tables and tasks.
    """

    name: str = JSON
    schemas: str = ""

    @property
    def is_json(self) -> bool:
        """Whether values are read as they are."""
        return self.name == JSON


JSON_FORMAT = ValueFormat()


def format_name(text: str) -> str:
    """The name of a format, whether or not it is installed here.

    Raises:
        ValueError: it cannot be a name.
    """
    if not _NAME.fullmatch(text):
        raise ValueError
    return text


@lru_cache(64)
def parse_schemas(text: str) -> dict[int, Schema]:
    """Schemas by id; none for an empty text.

    Raises:
        ValueError: it is something else.
    """
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[int, Schema])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(str(error)) from None


def schemas_text(schemas: dict[int, Schema]) -> str:
    """As the setting has them."""
    return msgspec.json.encode(dict(sorted(schemas.items()))).decode()

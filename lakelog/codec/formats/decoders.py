"""Values of any format as JSON, which all that shows, searches or makes columns of values reads.

| format        | what a value is                                                             |
|---------------|-----------------------------------------------------------------------------|
| `json`        | as it is                                                                    |
| `confluent`   | Avro, Protobuf or JSON with the id of a schema in a registry before it       |
| `avro`        | a single object of Avro's, of a schema in ``lakelog.schemas``               |
| `messagepack` | MessagePack                                                                 |
| `cbor`        | CBOR                                                                        |
| any other     | what the entry point of that name in the group ``lakelog.decoders`` reads   |

A decoder takes bytes and gives an object that JSON can say, with dates, times, decimals, UUIDs and
bytes (Base64) besides. What it raises is why a value is not decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from ...errors import MissingExtraError
from ...values import value_format as formats
from ...values.value_format import ValueFormat, parse_schemas
from .schemas import ByRegistry, SingleObjects, Undecodable

GROUP = "lakelog.decoders"


class Decoded(NamedTuple):
    """Values as JSON.

    Args:
        values: binary; those that could not be decoded as they were.
        errors: why not, by row.
    """

    values: pa.Array
    errors: dict[int, str]


def decoded(values: pa.Array | pa.ChunkedArray, form: ValueFormat) -> Decoded:
    """Values of a format as JSON.

    Raises:
        MissingExtraError: what reads them is not installed.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if form.is_json:
        return Decoded(values, {})
    decode = _decoder(form)
    encode = msgspec.json.Encoder(enc_hook=str).encode
    found: list[bytes | None] = []
    errors: dict[int, str] = {}
    for row, value in enumerate(values.to_pylist()):
        if value is not None:
            try:
                value = encode(decode(value))
            except ImportError as error:
                raise MissingExtraError(
                    f"values of format {form.name!r} need {error.name}, which is not installed: "
                    "pip install 'lakelog[schemas]'"
                ) from error
            except Undecodable as error:
                errors[row] = str(error)
            except Exception as error:
                errors[row] = f"not decoded as {form.name}: {error!r:.200}"
        found.append(value)
    return Decoded(pa.array(found, pa.binary()), errors)


def is_installed(name: str) -> bool:
    """Whether a format of that name can be read here, as far as nothing of it is imported."""
    return name in formats.FORMATS or bool(entry_points(group=GROUP, name=name))


@lru_cache(64)
def _decoder(form: ValueFormat) -> Callable[[bytes], Any]:
    """What reads a value; raises MissingExtraError where it is not installed."""
    name = form.name
    if name == formats.CONFLUENT:
        return ByRegistry(parse_schemas(form.schemas))
    if name == formats.AVRO:
        return SingleObjects(parse_schemas(form.schemas))
    if name == formats.MESSAGE_PACK:
        return msgspec.msgpack.decode
    if name == formats.CBOR:
        return _cbor
    for one in entry_points(group=GROUP, name=name):
        made: Callable[[bytes], Any] = one.load()
        return made
    raise MissingExtraError(
        f"values of format {name!r} cannot be read here: nothing that is installed has an entry "
        f"point of that name in the group {GROUP}. Formats are {', '.join(formats.FORMATS)}"
    )


def _cbor(value: bytes) -> Any:
    import cbor2

    return cbor2.loads(value)

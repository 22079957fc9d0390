"""Values that a serialiser wrote by a schema: Confluent's wire format, and Avro's single objects.

Source: Confluent's wire format (a zero byte, the schema's id in four bytes, big-endian; of Protobuf
then the indexes of the message as zigzag numbers, a single zero for the first); Avro's encoding of
single objects (C3 01 and the CRC-64-AVRO fingerprint in eight bytes, little-endian).
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ...values.value_format import Schema
from .schema_registry import RegistryError, registry

Read = Callable[[bytes], Any]

_AVRO_MARK = b"\xc3\x01"
_FIRST = (0,)  # message of a Protobuf file
_BASE64 = re.compile(r"[A-Za-z0-9+/]+=*")
_PROTOBUFS_OWN = "google/protobuf/"


class Undecodable(Exception):
    """A value is not what its format says; says why."""


class ByRegistry:
    """Confluent's wire format.

    Args:
        schemas: those that are known; others are asked of the registry.
    """

    def __init__(self, schemas: Mapping[int, Schema]) -> None:
        self._schemas = schemas
        self._readers: dict[int, Read] = {}

    def __call__(self, value: bytes) -> Any:
        """The object.

        Raises:
            Undecodable: it is no such value, or its schema is not to be had.
        """
        if len(value) < 5 or value[0] != 0:
            raise Undecodable("not in the wire format of a schema registry")
        schema_id = int.from_bytes(value[1:5], "big")
        reader = self._readers.get(schema_id)
        if reader is None:
            reader = self._readers[schema_id] = reader_of(self._schema(schema_id))
        return reader(value[5:])

    def _schema(self, schema_id: int) -> Schema:
        known = self._schemas.get(schema_id)
        if known is not None:
            return known
        there = registry()
        try:
            if there is None:
                raise RegistryError("no schema registry is given: LAKELOG_SCHEMA_REGISTRY=URL")
            return there.schema(schema_id)
        except RegistryError as error:
            raise Undecodable(f"schema {schema_id} is not known: {error}") from None


class SingleObjects:
    """Avro's single-object encoding, of schemas that are known."""

    def __init__(self, schemas: Mapping[int, Schema]) -> None:
        self._schemas = schemas

    @cached_property
    def _readers(self) -> dict[bytes, Read]:
        import fastavro.schema

        found = {}
        for one in self._schemas.values():
            text = fastavro.schema.to_parsing_canonical_form(json.loads(one.schema))
            print_ = fastavro.schema.fingerprint(text, "CRC-64-AVRO")
            found[bytes.fromhex(print_)] = reader_of(one)
        return found

    def __call__(self, value: bytes) -> Any:
        """The object.

        Raises:
            Undecodable: it is no such value, or its schema is not known.
        """
        if value[:2] != _AVRO_MARK or len(value) < 10:
            raise Undecodable("not a single object of Avro's")
        reader = self._readers.get(value[2:10])
        if reader is None:
            raise Undecodable(
                f"no schema in lakelog.schemas has the fingerprint {value[2:10].hex()}"
            )
        return reader(value[10:])


def reader_of(schema: Schema) -> Read:
    """What reads values by a schema.

    Raises:
        Undecodable: nothing does.
        ImportError: what would is not installed.
    """
    kinds = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
    make = kinds.get(schema.schema_type)
    if make is None:
        raise Undecodable(f"its schema is of type {schema.schema_type}, which is not known")
    try:
        return make(schema)
    except (ImportError, Undecodable):
        raise
    except Exception as error:
        raise Undecodable(f"its schema cannot be read: {error}") from None


def _json(schema: Schema) -> Read:
    return msgspec.json.decode


def _avro(schema: Schema) -> Read:
    import fastavro
    from fastavro.schema import parse_schema

    named: dict[str, Any] = {}
    for text in schema.references.values():
        parse_schema(json.loads(text), named)
    parsed = parse_schema(json.loads(schema.schema), named)

    def read(value: bytes) -> Any:
        file = BytesIO(value)
        found = fastavro.schemaless_reader(file, parsed, None)
        if file.read(1):
            raise Undecodable("it is longer than its schema says")
        return found

    return read


def _protobuf(schema: Schema) -> Read:
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    file = _described(schema)
    classes: dict[tuple[int, ...], Any] = {}

    def read(value: bytes) -> Any:
        indexes, at = _indexes(value)
        if indexes not in classes:
            try:
                messages = [*file.message_types_by_name.values()]
                for number in indexes:
                    message = messages[number]
                    messages = message.nested_types
            except IndexError:
                raise Undecodable(f"its schema has no message {list(indexes)}") from None
            classes[indexes] = GetMessageClass(message)
        try:
            return _members(classes[indexes].FromString(value[at:]))
        except DecodeError as error:
            raise Undecodable(f"no such message of Protobuf: {error}") from None

    return read


def _indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Which message it is, and where it begins."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            if at >= len(value) or shift > 31:
                raise Undecodable("the indexes of its message end early")
            byte = value[at]
            at += 1
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return (found >> 1) ^ -(found & 1)

    count = number()
    if count == 0:
        return _FIRST, at
    if not 0 < count <= 32:
        raise Undecodable("the indexes of its message make no sense")
    indexes = tuple(number() for _ in range(count))
    if min(indexes) < 0:
        raise Undecodable("the indexes of its message make no sense")
    return indexes, at


def _described(schema: Schema) -> Any:
    """The descriptor of a file of messages.

    A registry has its text, as in ``.proto``, or, as Confluent's serialiser for Python leaves it
    there, its descriptor in Base64.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    if not _BASE64.fullmatch(schema.schema):
        files = _compiled(schema)
    else:
        texts = [*schema.references.values(), schema.schema]
        files = [FileDescriptorProto.FromString(base64.b64decode(text)) for text in texts]
    added: set[str] = set()
    for file in files:
        for name in file.dependency:
            if name.startswith(_PROTOBUFS_OWN) and name not in added:
                module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
                pool.Add(FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb))
                added.add(name)
        if not file.name.startswith(_PROTOBUFS_OWN):
            pool.Add(file)
    return pool.FindFileByName(files[-1].name)


def _compiled(schema: Schema) -> Sequence[Any]:
    """The descriptors of ``.proto`` texts, by Protobuf's own compiler."""
    import grpc_tools
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    own = "value.proto"
    with TemporaryDirectory(prefix="lakelog-schema-") as made:
        folder = Path(made).resolve()
        for name, text in {**schema.references, own: schema.schema}.items():
            path = folder / name
            if not path.resolve().is_relative_to(folder):
                raise Undecodable(f"it refers to {name!r}, which is no name of a file")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        include = Path(grpc_tools.__file__).parent / "_proto"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{include}"]
        command += ["--include_imports", f"--descriptor_set_out={folder / 'out'}", own]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = done.stderr.strip().splitlines()[-1:]
            raise Undecodable(f"its schema cannot be compiled: {' '.join(why)}")
        return [*FileDescriptorSet.FromString((folder / "out").read_bytes()).file]


def _members(message: Any) -> Any:
    """As JSON's mapping of Protobuf has it, but whole numbers of 64 bits as numbers."""
    from google.protobuf.json_format import MessageToDict

    told = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return _numbers(told, message.DESCRIPTOR)


def _numbers(told: Any, descriptor: Any) -> Any:
    if not isinstance(told, dict):
        return told  # a type of Protobuf's own that JSON has a short form of
    for field in descriptor.fields:
        value = told.get(field.name)
        if value is None:
            continue
        kind, message = field, field.message_type
        if message is not None and message.GetOptions().map_entry:
            kind = message.fields_by_name["value"]
            told[field.name] = {name: _number(one, kind) for name, one in value.items()}
        elif isinstance(value, list):
            told[field.name] = [_number(one, kind) for one in value]
        else:
            told[field.name] = _number(value, kind)
    return told


def _number(value: Any, field: Any) -> Any:
    if field.message_type is not None:
        return _numbers(value, field.message_type)
    is_whole = field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64)
    return int(value) if is_whole and isinstance(value, str) else value

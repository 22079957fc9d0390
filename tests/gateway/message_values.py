"""Messages of random values, told by Kafka's definitions rather than by what was made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from lakelog.gateway.protocol.definitions import Definitions, Versions, snake
from lakelog.gateway.protocol.primitives import Api, ApiMessage, Message
from lakelog.gateway.protocol.wire import API

DEFINITIONS = Definitions.of_json(Path(__file__).with_name("definitions.json").read_text("utf-8"))

_NUMBERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def every_version() -> Iterator[tuple[Api, type[ApiMessage], int]]:
    """Each request and response in each version that is served."""
    for api in API.values():
        for message in (api.request, api.response):
            for version in range(api.min_version, api.max_version + 1):
                yield api, message, version


class MessageValues:
    """Random messages, of equal seeds the same ones.

    Args:
        tame: numbers stay small and not negative, error codes are Kafka's, and nothing is null.
    """

    def __init__(self, seed: object, tame: bool = False) -> None:
        self.random = Random(str(seed))
        self.tame = tame

    def message(self, kind: type[ApiMessage], version: int) -> ApiMessage:
        definition = DEFINITIONS.messages[kind.__name__]
        common = {struct["name"]: struct for struct in definition.get("commonStructs", ())}
        found = self._struct(kind, kind, definition["fields"], version, common)
        assert isinstance(found, ApiMessage)
        return found

    def _struct(
        self,
        root: type[ApiMessage],
        struct: type[Message],
        fields: list[dict[str, Any]],
        version: int,
        common: Mapping[str, Any],
    ) -> Message:
        values = {}
        for field in fields:
            if version not in Versions.of(field["versions"]):
                continue
            is_tagged = version in Versions.of(field.get("taggedVersions"))
            if is_tagged and self.random.random() < 0.5:
                continue
            value = self._value(root, field, version, common)
            if not is_tagged or value != []:  # which is what () means there
                values[snake(field["name"])] = value
        return struct(**values)

    def _value(
        self, root: type[ApiMessage], field: dict[str, Any], version: int, common: Mapping[str, Any]
    ) -> Any:
        nullable = version in Versions.of(field.get("nullableVersions"))
        if nullable and not self.tame and self.random.random() < 0.3:
            return None
        if field["type"].startswith("[]"):
            one = {**field, "type": field["type"][2:], "nullableVersions": None}
            count = self.random.choice([0, 1, 1, 2, 3])
            return [self._value(root, one, version, common) for _ in range(count)]
        kind = field["type"]
        if kind in _NUMBERS:
            return self._number(kind, is_code=field["name"].endswith("ErrorCode"))
        match kind:
            case "bool":
                return self.random.random() < 0.5
            case "float64":
                return self.random.uniform(-1e9, 1e9)
            case "string":
                return self._text()
            case "bytes" | "records":
                return self.random.randbytes(self.random.choice([0, 1, 20, 126, 127, 128, 300]))
            case "uuid":
                return UUID(bytes=self.random.randbytes(16))
        fields = field.get("fields") or common[kind]["fields"]
        return self._struct(root, getattr(root, kind), fields, version, common)

    def _number(self, kind: str, is_code: bool) -> int:
        low, high = _NUMBERS[kind]
        if self.tame:
            return self.random.randrange(100 if is_code else min(high, 10_000) + 1)
        return self.random.choice([low, high, 0, self.random.randint(low, high)])

    def _text(self) -> str:
        letters = self.random.choice(["abc", "äöü€", "a🦆"])
        length = self.random.choice([0, 1, 5, 20, 126, 127, 128, 300])
        return "".join(self.random.choices(letters, k=length))


def plain_message(message: Any, kind: type[ApiMessage], version: int) -> dict[str, Any]:
    """What a version of a message has, as dictionaries and lists; of any library.

    Names are those of Kafka's definitions, as Python writes them.
    """
    definition = DEFINITIONS.messages[kind.__name__]
    common = {struct["name"]: struct for struct in definition.get("commonStructs", ())}
    return _plain(message, kind, definition["fields"], version, common)


def _plain(
    message: Any,
    root: type[ApiMessage],
    fields: list[dict[str, Any]],
    version: int,
    common: Mapping[str, Any],
) -> dict[str, Any]:
    found = {}
    for field in fields:
        if version not in Versions.of(field["versions"]):
            continue
        name = snake(field["name"])
        # Some have types for times, and no units in names.
        value = getattr(message, name, getattr(message, name.removesuffix("_ms"), None))
        kind = field["type"].removeprefix("[]")
        inner = field.get("fields") or common.get(kind, {}).get("fields")
        if inner is not None and value is None and not field.get("nullableVersions"):
            value = getattr(root, kind)()  # a tagged field that was not there
        if inner is not None and isinstance(value, list | tuple):
            value = [_plain(one, root, inner, version, common) for one in value]
        elif inner is not None and value is not None:
            value = _plain(value, root, inner, version, common)
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, memoryview):
            value = bytes(value)
        found[name] = value
    return found

"""What a Delta log says, of which `table_log` makes a table. Pure.

Source: Delta's protocol, "Actions".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from ...base.json_text import parse_json
from ...values.record import MAX_OFFSET
from ..schema import PARTITION_COLUMNS
from ..segment import UNKNOWN_TIMESTAMP_MS, SegmentFile
from .deletion_vectors import DeletionVector

#: What a reader must understand. Spark is asked about tables with any other feature.
READER_FEATURES = frozenset(
    {
        "catalogManaged",
        "catalogOwned-preview",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)

_MAPPING_MODE = "delta.columnMapping.mode"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class NotDirectError(Exception):
    """Only Spark can tell: why, as a sentence without its full stop."""


class VersionGoneError(NotDirectError):
    """The log no longer goes back to a version."""


class Metadata(Struct, frozen=True):
    """What a table is, as its log says."""

    table_id: str
    properties: Mapping[str, str]
    columns: tuple[str, ...]
    stored_as: Mapping[str, str]  # by column, also of headers' parts: where names differ

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Metadata:
        """Of an action ``metaData``.

        Raises:
            NotDirectError: columns are found by numbers, or it is no topic's table.
        """
        properties = dict(action.get("configuration") or {})
        mode = properties.get(_MAPPING_MODE, "none")
        if mode not in ("none", "name"):
            raise NotDirectError(f"its columns are mapped by {mode}")
        if list(action.get("partitionColumns") or ()) != PARTITION_COLUMNS:
            raise NotDirectError(f"it is partitioned by {action.get('partitionColumns')}")
        fields = parse_json(action["schemaString"])["fields"]
        stored_as = dict(_stored_names(fields)) if mode == "name" else {}
        names = tuple(field["name"] for field in fields)
        return cls(action["id"], properties, names, stored_as)


def _stored_names(fields: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    for field in fields:
        kind = field["type"]
        if field["name"] == "headers" and isinstance(kind, dict):
            element = kind.get("elementType")
            if isinstance(element, dict):
                # A header has a key and a value too; their stored names are their own.
                for part in element.get("fields", ()):
                    stored = part.get("metadata", {}).get(_PHYSICAL_NAME, part["name"])
                    if stored != part["name"]:
                        yield f"headers.{part['name']}", stored
        stored = field.get("metadata", {}).get(_PHYSICAL_NAME, field["name"])
        if stored != field["name"]:
            yield field["name"], stored


def check_protocol(action: Mapping[str, Any]) -> None:
    """Refuse a table that wants more of a reader than this one can.

    Raises:
        NotDirectError: so it is.
    """
    features = set(action.get("readerFeatures") or ())
    if int(action["minReaderVersion"]) > 3 or not features <= READER_FEATURES:
        more = ", ".join(sorted(features - READER_FEATURES)) or action["minReaderVersion"]
        raise NotDirectError(f"its readers must understand {more}")


class LogFile(SegmentFile, frozen=True):
    """A data file of a table by name; its range is that of its rows, as far as is known."""

    vector: DeletionVector | None = None
    first: int | None = None  # None, as all that follows: statistics do not say, or not exactly
    last: int | None = None
    min_us: int | None = None
    max_us: int | None = None

    @classmethod
    def of(cls, action: Mapping[str, Any], stored_as: Mapping[str, str]) -> LogFile:
        """Of an action ``add``.

        Raises:
            NotDirectError: it lies outside the table.
        """
        path = unquote(action["path"])
        if "://" in path or path.startswith("/"):
            raise NotDirectError(f"its file {path} lies elsewhere")
        values = action["partitionValues"]
        partition, segment = (int(values[stored_as.get(name, name)]) for name in PARTITION_COLUMNS)
        stats = action.get("stats")
        said = parse_json(stats) if stats else {}
        low, high = said.get("minValues") or {}, said.get("maxValues") or {}
        offset, timestamp = (stored_as.get(name, name) for name in ("offset", "timestamp"))
        first, last = low.get(offset), high.get(offset)
        min_us, max_us = _micros(low.get(timestamp)), _micros(high.get(timestamp))
        vector = action.get("deletionVector")
        records = said.get("numRecords")
        known = vector is None and None not in (records, first, last, min_us, max_us)
        return cls(
            partition,
            segment,
            path,
            int(action["size"]),
            1 if records is None else int(records),
            0 if first is None else int(first),
            MAX_OFFSET if last is None else int(last) + 1,
            -1 if min_us is None else min_us // 1000,
            UNKNOWN_TIMESTAMP_MS if max_us is None else max_us // 1000,
            int(action.get("modificationTime") or -1),
            None if vector is None else DeletionVector.of(vector),
            first if known else None,
            last if known else None,
            min_us if known else None,
            max_us if known else None,
        )

    @property
    def key(self) -> tuple[str, str]:
        """What Delta tells files by."""
        return key_of(self.path, self.vector)


def key_of(path: str, vector: DeletionVector | None) -> tuple[str, str]:
    return path, "" if vector is None else vector.unique_id


def removed_key(action: Mapping[str, Any]) -> tuple[str, str]:
    """Of an action ``remove``."""
    vector = action.get("deletionVector")
    return key_of(unquote(action["path"]), None if vector is None else DeletionVector.of(vector))


def _micros(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00")) - _EPOCH
    except (ValueError, TypeError):  # years that Python does not know, or no zone
        return None
    return (at.days * 86_400 + at.seconds) * 1_000_000 + at.microseconds


class CommitActions(Struct, frozen=True):
    """One version's actions."""

    version: int
    info: Mapping[str, Any]
    adds: tuple[Mapping[str, Any], ...]
    removes: tuple[Mapping[str, Any], ...]
    metadata: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None

    @classmethod
    def parse(cls, version: int, text: bytes) -> CommitActions:
        """Of a log file.

        Raises:
            ValueError: it is not written as the protocol says.
        """
        info: Mapping[str, Any] = {}
        metadata = protocol = None
        adds, removes = [], []
        for line in text.splitlines():
            if not line.strip():
                continue
            action = parse_json(line)
            if not isinstance(action, dict):
                raise ValueError("a line of it is no action")
            if "add" in action:
                adds.append(action["add"])
            elif "remove" in action:
                removes.append(action["remove"])
            elif "commitInfo" in action:
                info = action["commitInfo"]
            elif "metaData" in action:
                metadata = action["metaData"]
            elif "protocol" in action:
                protocol = action["protocol"]
        return cls(version, info, tuple(adds), tuple(removes), metadata, protocol)

    @property
    def time_ms(self) -> int:
        return int(self.info.get("inCommitTimestamp") or self.info.get("timestamp") or 0)

    @property
    def metrics(self) -> dict[str, str]:
        given = self.info.get("operationMetrics") or {}
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in given.items()
        }

"""What an erasure says of itself, as JSON that shows when it was changed afterwards.

| member | |
|---|---|
| lakelog, kind | the format, 1; ``erasure`` |
| topic, topic_id, asked, salt | of what: SHA-256 of the salt and what was asked for, not itself |
| who, version, began_ms, ended_ms | by whom, by which lakelog, when |
| log_ends | by partition, the offset up to which it looked; null without Redis |
| partitions | by partition, the offsets as [start, end), and what held them |
| table_versions, history_forgotten | of the Delta table |
| files | that were deleted: path, bytes, SHA-256 |
| redis | what was trimmed; of an older version's quarantine, given up; servers' files on disk |
| exports | that the log knows of and that stay: where, and when it was made |
| not_reached, failures | in sentences |
| digest | ``sha256:`` of all the other members |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ...base.json_text import parse_json
from ...cleanup.erasure import ColdErased
from ...errors import InvalidArgumentError, LakelogError
from ...hot.server_info import Persistence
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from ..transfer.known_exports import ExportTold


class HotErased(Struct, frozen=True, eq=False):
    """What became of one topic's hot tier.

    Attributes:
        ends: by partition, where the log ended at the beginning: matches below it are gone.
        matches: by partition, how many matching records Redis held.
        trimmed: by partition, the offsets that Redis let go of for them.
        given_up: by partition, the ids of the damaged entries that an older version kept, and whose
            bytes went.
        servers: what became of the servers' files on disk; empty for a plan.
        beyond: what may hold matches and was not reached, in sentences.
    """

    ends: Mapping[int, int]
    matches: Mapping[int, int] = field(default_factory=dict)
    trimmed: Mapping[int, OffsetRange] = field(default_factory=dict)
    given_up: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    servers: Sequence[Persistence] = ()
    beyond: tuple[str, ...] = ()


class Erased(Struct, frozen=True, eq=False):
    """One erasure of records of a topic.

    Attributes:
        asked: SHA-256 of a salt and what was asked for, in hex.
        salt: random bytes.
        hot: None without a Redis.
        failures: why something could not be done; running it again does it.
        unarchived: by partition, matches that Redis alone holds; of a plan, which archives nothing.
        exports: those that the log knows of and that hold the topic.
    """

    topic: Topic
    asked: str
    salt: bytes
    who: str
    version: str  # of lakelog
    began_ms: int
    ended_ms: int
    cold: ColdErased
    hot: HotErased | None = None
    failures: tuple[LakelogError, ...] = ()
    unarchived: Mapping[int, int] = field(default_factory=dict)
    exports: tuple[ExportTold, ...] = ()

    @property
    def records(self) -> int:
        """How many records were, or would be, erased; each once, whichever tiers hold it."""
        return sum(self.records_of(number) for number in self.partitions)

    @property
    def partitions(self) -> list[int]:
        """The partitions that hold a match."""
        hot = () if self.hot is None else self.hot.matches
        return sorted({*self.cold.partitions, *hot})

    def records_of(self, partition: int) -> int:
        """As `records`, of one partition."""
        found = self.cold.partitions.get(partition)
        cold = 0 if found is None else found.records
        return cold + self.unarchived.get(partition, 0)

    @property
    def beyond(self) -> tuple[str, ...]:
        """What may hold matches and was not reached, in sentences."""
        hot = (_WITHOUT_REDIS,) if self.hot is None else self.hot.beyond
        return (*self.cold.beyond, *hot, *map(str, self.exports), *_ALWAYS)


_WITHOUT_REDIS = (
    "Redis, which was not asked: what it still holds of archived records, and records that are not "
    "archived; erase again with --redis"
)

#: What no log can reach.
_ALWAYS = (
    "backups, other exports and copies that others made of the tables, of Redis or of its disk; "
    "older versions of files that a bucket keeps; blocks of a disk that are free but not "
    "overwritten",
    "what consumers and queries have read already, and records appended since the erasure began",
)


_FORMAT = 1
_KIND = "erasure"


def certificate(erased: Erased) -> dict[str, Any]:
    """The certificate of an erasure that was done."""
    hot = erased.hot
    said: dict[str, Any] = {
        "lakelog": _FORMAT,
        "kind": _KIND,
        "topic": erased.topic.name,
        "topic_id": str(erased.topic.topic_id),
        "asked": erased.asked,
        "salt": erased.salt.hex(),
        "who": erased.who,
        "version": erased.version,
        "began_ms": erased.began_ms,
        "ended_ms": erased.ended_ms,
        "log_ends": None if hot is None else {str(n): end for n, end in hot.ends.items()},
        "partitions": {
            str(number): {
                "offsets": [list(one) for one in found.offsets],
                "records": found.records,
                "nulled_offset": found.nulled_offset,
                "files": found.files,
            }
            for number, found in sorted(erased.cold.partitions.items())
        },
        "table_versions": list(erased.cold.versions),
        "history_forgotten": erased.cold.history_forgotten,
        "files": [
            {"path": one.path, "size_bytes": one.size_bytes, "sha256": one.sha256}
            for one in erased.cold.discarded
        ],
        "redis": None
        if hot is None
        else {
            "records": {str(number): count for number, count in sorted(hot.matches.items())},
            "trimmed": {str(number): list(gone) for number, gone in sorted(hot.trimmed.items())},
            "given_up": {str(number): list(ids) for number, ids in sorted(hot.given_up.items())},
            "servers": [
                {
                    "server": one.server,
                    "append_only_file": one.append_only_file,
                    "snapshot": one.snapshot,
                }
                for one in hot.servers
            ],
        },
        "exports": [
            {"place": one.place, "host": one.host, "exported_ms": one.exported_ms}
            for one in erased.exports
        ],
        "not_reached": list(erased.beyond),
        "failures": [str(error) for error in erased.failures],
    }
    return {**said, "digest": _digest(said)}


def check_certificate(text: str | bytes) -> dict[str, Any]:
    """The certificate that a text is, as it was written.

    Raises:
        InvalidArgumentError: it is none, or was changed.
    """
    try:
        said = parse_json(text)
        if said["lakelog"] != _FORMAT or said["kind"] != _KIND:
            raise ValueError(f"its format is {said['lakelog']!r} of {said['kind']!r}")
        digest, rest = said["digest"], {k: v for k, v in said.items() if k != "digest"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"this is no certificate of an erasure ({error!r:.200}). `lakelog erase TOPIC --key K "
            "--certificate FILE` writes one"
        ) from None
    if digest != _digest(rest):
        raise InvalidArgumentError(
            f"the certificate was changed after it was written: its digest says {digest!r:.100}, "
            f"its content has {_digest(rest)}. Take the file as `lakelog erase` wrote it"
        )
    return dict(said)


def _digest(said: Mapping[str, Any]) -> str:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

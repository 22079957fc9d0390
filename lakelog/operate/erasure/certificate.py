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
from collections.abc import Mapping
from typing import Any

from ...base.json_text import parse_json
from ...errors import InvalidArgumentError
from .report import Erased

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

"""``lakelog delete-records``: raise log start offsets, as kafka-delete-records does."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from .connect import open_log
from .options import Offer
from .output import Failed, Message

if TYPE_CHECKING:
    from ..lakelog import Lakelog
    from ..read.unified_log import UnifiedLog

_EPILOG = """\
Records below an offset become unreadable at once, in both tiers; their bytes go with the next
cleanup. Each partition stands by itself: the exit code is 1 when any failed. -1 is the log end.

examples:
  lakelog --dir ./log delete-records orders -p 0 --before 1000
  lakelog --dir ./log delete-records orders --before=-30d --dry-run
  lakelog --dir ./log delete-records --offset-json-file offsets.json

The file is kafka-delete-records':
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}
"""

_FILE_VERSION = 1


def add_delete_records(offer: Offer) -> None:
    added = offer.command(
        _run,
        "Forget the records before an offset or a time, in both tiers.",
        _EPILOG,
        recorded="delete-records",
    )
    added.add_argument("topic", nargs="?", metavar="TOPIC")
    added.add_argument(
        "-p", "--partition", type=int, action="append", help="repeatable; default: all partitions"
    )
    added.add_argument(
        "--before",
        metavar="POSITION",
        help="the first record to keep: an offset, a time, or -1 for the log end (keep none)",
    )
    added.add_argument(
        "--offset-json-file", metavar="FILE", help="which partitions, and before which offsets"
    )
    added.add_argument(
        "--dry-run", action="store_true", help="say how many records would go; delete nothing"
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    topic: str
    partition: int
    before: int | str  # the first offset to keep, or the position where it is


def _run(arguments: argparse.Namespace) -> Message:
    from ..errors import InvalidArgumentError

    file, topic, before = arguments.offset_json_file, arguments.topic, arguments.before
    if file is not None and (topic or arguments.partition or before is not None):
        raise InvalidArgumentError(
            "--offset-json-file says which partitions and offsets: give it without TOPIC, -p and "
            "--before"
        )
    if file is None and (not topic or before is None):
        raise InvalidArgumentError("give TOPIC and --before POSITION, or --offset-json-file FILE")
    given = None if file is None else _of_file(Path(file))
    with open_log(arguments) as log:
        asked = _of_position(log, topic, arguments.partition, before) if given is None else given
        _refuse_repeated(asked)
        rows = _delete(log, asked, arguments.dry_run)
    lines = [_line(row) for row in rows if "error" not in row]
    failed = [_line(row) for row in rows if "error" in row]
    if not rows:
        lines = ["no partition is named, so nothing was deleted"]
    message = Message("\n".join(lines), {"partitions": rows})
    if failed:
        is_told = lines or arguments.output == "json"
        raise Failed(message if is_told else None, "\n".join(failed))
    return message


def _delete(log: Lakelog, asked: Iterable[_Asked], dry_run: bool) -> list[dict[str, Any]]:
    from ..errors import LakelogError

    open_topic = cache(log.log)
    rows = []
    for one in asked:
        row: dict[str, Any] = {"topic": one.topic, "partition": one.partition}
        try:
            unified = open_topic(one.topic)
            unified.topic.partition(one.partition)
            offset = _offset(unified, one)
            if dry_run:
                row["would_delete"] = unified.records_below(one.partition, offset)
            else:
                row["low_watermark"] = unified.raise_log_start(one.partition, offset)
        except LakelogError as error:
            row["error"] = error.message
        rows.append(row)
    return rows


def _line(row: dict[str, Any]) -> str:
    """As kafka-delete-records prints it; it has no dry run."""
    kind = next(name for name in ("error", "would_delete", "low_watermark") if name in row)
    value = counted(row[kind], "record") if kind == "would_delete" else row[kind]
    return f"partition: {row['topic']}-{row['partition']}\t{kind}: {value}"


def _refuse_repeated(asked: Iterable[_Asked]) -> None:
    from ..errors import InvalidArgumentError

    counts = Counter(f"{one.topic}-{one.partition}" for one in asked)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    if repeated:
        raise InvalidArgumentError(
            f"{', '.join(repeated)} is named more than once; nothing was deleted. Name each "
            "partition once"
        )


# -- TOPIC --before ------------------------------------------------------------------------------


def _of_position(
    log: Lakelog, topic: str, partitions: list[int] | None, before: str
) -> list[_Asked]:
    from ..errors import InvalidArgumentError
    from ..values.offsets import position

    count = log.topics.get(topic).partitions
    numbers = list(range(count)) if partitions is None else partitions
    offset = int(before) if re.fullmatch(r"[+-]?\d+", before.strip()) else None
    if offset not in (None, -1) and partitions is None and count > 1:
        raise InvalidArgumentError(
            f"offset {offset} means something else in each of the {count} partitions of "
            f"{topic!r}: say which with -p, or give a time",
            topic=topic,
        )
    if offset is None:
        position(before)  # refuses an invalid one here, before anything is deleted
    return [_Asked(topic, number, before if offset is None else offset) for number in numbers]


def _offset(log: UnifiedLog, asked: _Asked) -> int:
    from ..values.offsets import Ago, AtTimestamp, position

    if isinstance(asked.before, int):
        return asked.before
    # Before the search: if all records are older than the time, the answer is where the log ended
    # then, since records appended meanwhile may be younger.
    seen = log.offsets([asked.partition])[asked.partition]
    found = log.seek(asked.partition, asked.before)
    if found is not None:
        return found
    all_older = isinstance(position(asked.before), (AtTimestamp, Ago))
    return seen.log_end if all_older else seen.log_start


# -- the file ------------------------------------------------------------------------------------


def _of_file(path: Path) -> list[_Asked]:
    from ..errors import InvalidArgumentError

    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("partitions"), list):
        raise InvalidArgumentError(
            f'{path} has no list of partitions; it should read {{"partitions": [{{"topic": "t", '
            '"partition": 0, "offset": 1}], "version": 1}'
        )
    version = content.get("version", _FILE_VERSION)
    if version != _FILE_VERSION:
        raise InvalidArgumentError(
            f"{path} has version {version!r}; only version {_FILE_VERSION} is known"
        )
    return [_of_item(path, item) for item in content["partitions"]]


def _of_item(path: Path, item: Any) -> _Asked:
    from ..errors import InvalidArgumentError

    kinds = {"topic": str, "partition": int, "offset": int}
    for name, kind in kinds.items():
        value = item.get(name) if isinstance(item, dict) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidArgumentError(
                f"{path}: {json.dumps(item)} has no {name} that is "
                f"{'a text' if kind is str else 'a whole number'}; nothing was deleted"
            )
    return _Asked(item["topic"], item["partition"], item["offset"])

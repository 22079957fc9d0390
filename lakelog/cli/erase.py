"""``lakelog erase``, ``delete-records``: forget the records of a key, or those before an offset."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..base.text_table import counted
from ..errors import InvalidArgumentError, LakelogError, PartlyFailedError
from .connect import open_archived, open_log
from .options import Offer
from .output import Failed, Message, Page, Table
from .progress import ConsoleProgress

if TYPE_CHECKING:
    from ..lakelog import Lakelog
    from ..operate.erasure.certificate import Erased
    from ..read.topic_log import TopicLog

_ERASE = """\
Erased is what the log holds when this begins; offsets stay, and gaps appear. Nobody can go back to
versions of the table from before. Safe at any time; running it again does what is left. Exit code 1
when something could not be done, or a certificate is not as it was written. `lakelog help erasure`
tells the steps, what is not reached, and what the certificate says.

examples:
  lakelog --dir ./log erase orders --key ada --dry-run
  lakelog --dir ./log erase orders --key ada --certificate ada.json
  lakelog --dir ./log erase orders --where 'value.customer.email = "ada@example.com"'
  lakelog --dir ./log erase orders --where 'header.user = "ada" and time < "2024-01-01"'
  lakelog --dir ./log erase orders --key ada --quarantine    and what is damaged, and removed
  lakelog erase --verify ada.json
"""

_DELETE_RECORDS = """\
Records below an offset become unreadable at once, in both tiers; their bytes go with the next
cleanup. Each partition stands by itself: the exit code is 1 when any failed. -1 is the log end.

examples:
  lakelog --dir ./log delete-records orders -p 0 --before 1000
  lakelog --dir ./log delete-records orders --before=-30d --dry-run
  lakelog --dir ./log delete-records --offset-json-file offsets.json

The file is kafka-delete-records':
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}
"""


def add_erase(offer: Offer) -> None:
    added = offer.command(
        _erase, "Erase the records of a key from both tiers, for good.", _ERASE, recorded="erase"
    )
    added.add_argument("topic", nargs="?", metavar="TOPIC")
    added.add_argument(
        "--key", action="append", metavar="KEY", help="of the records that go; repeatable"
    )
    added.add_argument(
        "--where", metavar="EXPR", help="those that match go; as in consume (lakelog help read)"
    )
    added.add_argument(
        "--quarantine",
        action="store_true",
        help="give up removed files that cannot be read, and what an older version had put in "
        "quarantine; else they are told",
    )
    added.add_argument("--dry-run", action="store_true", help="count what would go; change nothing")
    added.add_argument("--certificate", metavar="FILE", help="write the certificate there, as JSON")
    added.add_argument(
        "--verify", metavar="FILE", help="check that a certificate is as it was written"
    )


def _erase(arguments: argparse.Namespace) -> Page | Message:
    asks = arguments.topic or arguments.key or arguments.where is not None or arguments.quarantine
    if arguments.verify is not None:
        if asks or arguments.dry_run or arguments.certificate:
            raise InvalidArgumentError("--verify FILE checks a certificate: give it alone")
        return _verified(arguments.verify)
    if not arguments.topic:
        raise InvalidArgumentError(
            "say of which topic: `lakelog erase TOPIC --key KEY`, or --where 'EXPR'"
        )
    if arguments.dry_run and arguments.certificate:
        raise InvalidArgumentError("--dry-run erases nothing that a --certificate could certify")
    _check_may_write(arguments.certificate)
    with ConsoleProgress().step("erase"), open_archived(arguments) as log:
        try:
            erased = log.erase(
                arguments.topic,
                arguments.key,
                where=arguments.where,
                dry_run=arguments.dry_run,
                quarantine=arguments.quarantine,
            )
        except PartlyFailedError as error:
            raise Failed(_page(error.report, arguments), error.message) from error
    return _page(erased, arguments)


def _check_may_write(path: str | None) -> None:
    """A certificate that cannot be written is noticed before anything is erased."""
    if path is None:
        return
    if Path(path).exists():
        raise InvalidArgumentError(
            f"{path} is there already, and may be the certificate of another erasure: name a new "
            "file",
            path=path,
        )
    try:
        Path(path).touch()
        Path(path).unlink()
    except OSError as error:
        raise InvalidArgumentError(
            f"the certificate cannot be written to {path}: {error.strerror}", path=path
        ) from error


def _page(erased: Erased, arguments: argparse.Namespace) -> Page:
    from ..operate.erasure.certificate import certificate

    would = "would be " if arguments.dry_run else ""
    said = None if arguments.dry_run else certificate(erased)
    kept = None if said is None else arguments.certificate
    if kept:
        Path(kept).write_text(json.dumps(said, indent=2) + "\n")
    leftovers, discarded = erased.cold.leftovers, len(erased.cold.discarded)
    given_up = {} if erased.hot is None else erased.hot.given_up
    files = f"{counted(discarded, 'file')} deleted"
    if arguments.dry_run:
        leftover = counted(leftovers, "file")
        files = f"{leftover} of older versions or failed runs would be deleted besides"
    elif many := sum(map(len, given_up.values())):
        files += f"; of damaged entries in Redis, given up: {many:,}"
    return Page(
        {
            "erased": Table(
                [_row(erased, number) for number in erased.partitions],
                empty=f"no record of topic {erased.topic.name} matches",
                title=f"{would}erased:",
            ),
            "deleted_files": Message(files, discarded or leftovers),
            "exports": Message("", [{"place": one.place} for one in erased.exports]),
            "given_up": Message("", given_up),
            "not_reached": Message(
                "not reached:\n" + "\n".join(f"- {one}" for one in erased.beyond),
                list(erased.beyond),
            ),
            "certificate": said and Message(f"certificate: {kept}" if kept else "", said),
        }
    )


def _row(erased: Erased, number: int) -> dict[str, Any]:
    cold = erased.cold.partitions.get(number)
    return {
        "topic": erased.topic.name,
        "partition": number,
        "records": erased.records_of(number),
        "files": 0 if cold is None else cold.files,
        "size_bytes": 0 if cold is None else cold.size_bytes,
        "in_redis": 0 if erased.hot is None else erased.hot.matches.get(number, 0),
    }


def _verified(path: str) -> Message:
    from ..operate.erasure.certificate import check_certificate

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}", path=path) from error
    said = check_certificate(text)
    records = sum(one["records"] for one in said["partitions"].values())
    return Message(
        f"{path} is as it was written: {counted(records, 'record')} of topic {said['topic']} "
        f"({said['topic_id']}) {'was' if records == 1 else 'were'} erased by {said['who']}",
        {"holds": True, "records": records, "topic": said["topic"], "digest": said["digest"]},
    )


# -- delete-records --------------------------------------------------------------------------------

_FILE_VERSION = 1


def add_delete_records(offer: Offer) -> None:
    added = offer.command(
        _delete_records,
        "Forget the records before an offset or a time, in both tiers.",
        _DELETE_RECORDS,
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


class _Asked(Struct, frozen=True):
    topic: str
    partition: int
    before: int | str  # the first offset to keep, or the position where it is


def _delete_records(arguments: argparse.Namespace) -> Message:
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


def _offset(log: TopicLog, asked: _Asked) -> int:
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
    kinds = {"topic": str, "partition": int, "offset": int}
    for name, kind in kinds.items():
        value = item.get(name) if isinstance(item, dict) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidArgumentError(
                f"{path}: {json.dumps(item)} has no {name} that is "
                f"{'a text' if kind is str else 'a whole number'}; nothing was deleted"
            )
    return _Asked(item["topic"], item["partition"], item["offset"])

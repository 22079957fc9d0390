"""``lakelog erase``: erase the records of a key from both tiers, for good."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from ..errors import EraseFailedError, InvalidArgumentError
from .connect import open_archived
from .options import Offer
from .output import Failed, Message, Page, Table
from .progress import ConsoleProgress

if TYPE_CHECKING:
    from ..operate.erasure.certificate import Erased

_EPILOG = """\
Offsets stay, and gaps appear: readers go on at the next record. A partition's last record keeps its
offset and loses key, value and headers. Erased is what the log holds when this begins; a key may be
appended again meanwhile, or later.

It archives the topic, has Redis let go of what matches, writes the files that hold a match again
without it, and deletes those at once, with files of older versions and failed runs that hold one.
Redis's append-only file and snapshot are written anew. Queries of Spark that are reading a deleted
file fail and are to be run again; lakelog's own readers look again. Nobody can go back to versions
of the table from before. Safe at any time, beside archivers and readers; running it again does what
is left. Exit code 1 when something could not be done, or a certificate is not as it was written.

The certificate says what went, from where, when, by whom, and what cannot be reached. It has keys
and conditions as a salted SHA-256 alone: who knows one can check that it was meant, but so can who
can guess it.

examples:
  lakelog --dir ./log erase orders --key ada --dry-run
  lakelog --dir ./log erase orders --key ada --certificate ada.json
  lakelog --dir ./log erase orders --where 'value.customer.email = "ada@example.com"'
  lakelog --dir ./log erase orders --where 'header.user = "ada" and time < "2024-01-01"'
  lakelog --dir ./log erase orders --key ada --quarantine    and what is damaged, and removed
  lakelog erase --verify ada.json
"""


def add_erase(offer: Offer) -> None:
    added = offer.command(
        _run, "Erase the records of a key from both tiers, for good.", _EPILOG, recorded="erase"
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


def _run(arguments: argparse.Namespace) -> Page | Message:
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
        except EraseFailedError as error:
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

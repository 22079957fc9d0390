"""``lakelog erase``: erase the records of a key from both tiers, for good."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .connect import open_archived
from .output import ConsoleProgress, Failed, Message, Page, Table

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


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "erase",
        parents=[common],
        description="Erase the records of a key from both tiers, for good.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    added.set_defaults(run=_run, recorded="erase")


def _run(arguments: argparse.Namespace) -> Page | Message:
    from ..errors import EraseFailedError, InvalidArgumentError

    asks = arguments.topic or arguments.key or arguments.where is not None
    asks = asks or arguments.quarantine
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
            page = _page(error.report, arguments)
            raise Failed(page, error.message) from error
    return _page(erased, arguments)


def _check_may_write(path: str | None) -> None:
    """A certificate that cannot be written is noticed before anything is erased."""
    from ..errors import InvalidArgumentError

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

    parts: dict[str, Any] = {}
    would = "would be " if arguments.dry_run else ""
    parts["erased"] = Table(
        [_row(erased, number) for number in erased.partitions],
        empty=f"no record of topic {erased.topic.name} matches",
        title=f"{would}erased:" if erased.partitions else None,
    )
    said = None if arguments.dry_run else certificate(erased)
    if said is not None and arguments.certificate:
        Path(arguments.certificate).write_text(json.dumps(said, indent=2) + "\n")
    if arguments.output == "json":
        parts["deleted_files"] = len(erased.cold.discarded) or erased.cold.leftovers
        parts["exports"] = [{"place": one.place} for one in erased.exports]
        parts["given_up"] = {} if erased.hot is None else erased.hot.given_up
        parts["not_reached"] = list(erased.beyond)
        parts["certificate"] = said
    else:
        parts["files"] = Message(_said_of_files(erased, dry_run=arguments.dry_run))
        parts["not_reached"] = Message(
            "not reached:\n" + "\n".join(f"- {one}" for one in erased.beyond)
        )
        if said is not None and arguments.certificate:
            parts["certificate"] = Message(f"certificate: {arguments.certificate}")
    return Page(parts)


def _row(erased: Erased, number: int) -> dict[str, Any]:
    cold = erased.cold.partitions.get(number)
    hot = 0 if erased.hot is None else erased.hot.matches.get(number, 0)
    return {
        "topic": erased.topic.name,
        "partition": number,
        "records": erased.records_of(number),
        "files": 0 if cold is None else cold.files,
        "size_bytes": 0 if cold is None else cold.size_bytes,
        "in_redis": hot,
    }


def _said_of_files(erased: Erased, *, dry_run: bool) -> str:
    from ..base.text_table import counted

    if dry_run:
        return (
            f"{counted(erased.cold.leftovers, 'file')} of older versions or failed runs would be "
            "deleted besides"
        )
    given_up = 0 if erased.hot is None else sum(map(len, erased.hot.given_up.values()))
    more = f"; of damaged entries in Redis, given up: {given_up:,}" if given_up else ""
    return f"{counted(len(erased.cold.discarded), 'file')} deleted{more}"


def _verified(path: str) -> Message:
    from ..base.text_table import counted
    from ..errors import InvalidArgumentError
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

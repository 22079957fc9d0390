"""Opening the log that the common options name."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import EmbeddedRedisError, InvalidArgumentError
from . import recorded
from .quiet_start import starting

if TYPE_CHECKING:
    from ..lakelog import Lakelog
    from ..place import ColdRoot


def storage_options(arguments: argparse.Namespace) -> dict[str, str] | None:
    """The ``--storage-option`` values; None if there are none.

    Raises:
        InvalidArgumentError: not NAME=VALUE, or a secret in clear.
    """
    from ..cold.store.store_options import parse_options

    return parse_options(arguments.storage_option) if arguments.storage_option else None


def cold_root(arguments: argparse.Namespace) -> ColdRoot | None:
    """The root that ``--cold`` names; None if it was not given."""
    from ..place import cold_root

    return cold_root(arguments.cold, arguments.location, storage_options(arguments))


def open_log(arguments: argparse.Namespace) -> Lakelog:
    """The log at ``--dir``, or at ``--redis`` and ``--cold``.

    Raises:
        InvalidArgumentError: neither was given, or both.
    """
    if not arguments.dir and not arguments.redis:
        raise InvalidArgumentError(
            "where is the log? Give --dir DIR for one with its own Redis (made when first used), "
            "or --redis URL and --cold ROOT; LAKELOG_DIR, LAKELOG_REDIS and LAKELOG_COLD do the "
            "same"
        )
    return _opened(arguments)


def _opened(arguments: argparse.Namespace) -> Lakelog:
    with starting():
        from ..lakelog import Lakelog

    say_what_is_logged(arguments)
    if arguments.dir and (arguments.redis or arguments.cold):
        raise InvalidArgumentError("give --dir, or --redis and --cold, not both")
    if arguments.storage_option and not arguments.cold:
        raise InvalidArgumentError("--storage-option goes with --cold: it opens an object store")
    if arguments.dir:
        if not getattr(arguments, "makes_log", False):
            _check_log_is_there(arguments.dir)
        log: Lakelog = Lakelog.embedded(
            arguments.dir, tenant=arguments.tenant, engine=arguments.engine
        )
    else:
        log = Lakelog.connect(
            arguments.redis or None,
            arguments.cold,
            location=arguments.location,
            keyspace=arguments.keyspace,
            tenant=arguments.tenant,
            engine=arguments.engine,
            password_ref=arguments.password_ref if arguments.redis else None,
            storage_options=storage_options(arguments),
        )
    recorded.begin(arguments, log)
    return log


def _check_log_is_there(directory: str) -> None:
    """A mistyped directory makes no log."""
    from ..base.local_path import local_path
    from ..place.embedded import has_log

    if not has_log(local_path(directory, "log's directory")):
        raise InvalidArgumentError(
            f"there is no log in {directory}: `lakelog --dir {shlex.quote(directory)} topics "
            "create NAME` makes one",
            value=directory,
        )


def open_archived(arguments: argparse.Namespace) -> Lakelog:
    """The log; only its archived part if ``--cold`` alone was given, or the disk of ``--dir`` takes
    nothing, so that no Redis can start there.

    Raises:
        InvalidArgumentError: see `open_log`.
    """
    if not arguments.dir:
        return _opened(arguments) if arguments.cold else open_log(arguments)
    try:
        return open_log(arguments)
    except EmbeddedRedisError as error:
        if error.disk is None:
            raise
        from ..base.local_path import local_path
        from ..lakelog import Lakelog

        cold = local_path(arguments.dir, "log's directory") / "cold"
        archived = Lakelog.connect(None, cold, tenant=arguments.tenant, engine=arguments.engine)
        print(
            f"the disk of {arguments.dir} takes nothing ({error.disk}), so its Redis cannot start: "
            "the log ends where it is archived",
            file=sys.stderr,
        )
        return archived


def no_topics(log: Lakelog) -> str:
    """What to say of a log without topics."""
    from ..errors import LakelogError

    try:
        lost = [topic.name for topic in log.restorable()] if log.redis is not None else []
        kept = [topic.name for topic in log.deleted() if topic.purged_ms is None]
    except LakelogError:  # the cold root does not answer, which was not asked
        lost, kept = [], []
    if kept and not lost:
        names = f"{', '.join(kept[:5])}{', …' if len(kept) > 5 else ''}"
        return f"no topics; `lakelog topics undelete` brings back what was deleted: {names}"
    if not lost:
        return "no topics yet"
    return (
        f"no topics, but tables of those that Redis has lost ({', '.join(lost[:5])}"
        f"{', …' if len(lost) > 5 else ''}): `lakelog restore` brings them back"
    )


@contextmanager
def open_to_read(arguments: argparse.Namespace) -> Iterator[Lakelog]:
    """As `open_archived`; says on standard error that a log read without its Redis may go on."""
    with open_archived(arguments) as log:
        if log.place.hot is None and not arguments.dir:  # `open_archived` has said why
            print(f"without --redis: the log ends where {log.place} ends", file=sys.stderr)
        yield log


#: Whose warnings the error of a command repeats, with the line of input that it is about.
_REPEATED = "lakelog.ingest.sender"


def say_what_is_logged(arguments: argparse.Namespace) -> None:
    """Write log lines to standard error: lakelog's warnings, or as many as ``--verbose`` asks for.

    What a warning tells, such as offsets that are skipped, or a deletion that the table does not
    know of yet, is told nowhere else.
    """
    import logging

    def is_for_everybody(record: logging.LogRecord) -> bool:
        is_ours = record.name.partition(".")[0] == "lakelog" and record.name != _REPEATED
        return is_ours or record.levelno >= logging.ERROR

    # By the handler, and not by levels of loggers, which would outlast a command in this process.
    handler = logging.StreamHandler()
    if not arguments.verbose:
        handler.addFilter(is_for_everybody)
    logging.basicConfig(
        level=logging.INFO if arguments.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[handler],
    )

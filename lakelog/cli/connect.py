"""Opening the log that the common options name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..jobs.cold_alone import ColdAlone
    from ..lakelog import Lakelog
    from ..spark.place import ColdRoot


def storage_options(arguments: argparse.Namespace) -> dict[str, str] | None:
    """What ``--storage-option`` says; None if it is not there.

    Raises:
        InvalidArgumentError: no NAME=VALUE, or a secret in clear.
    """
    from ..cold.store_options import parse_options

    return parse_options(arguments.storage_option) if arguments.storage_option else None


def cold_root(arguments: argparse.Namespace) -> ColdRoot | None:
    """Where ``--cold`` is; None where it was not given."""
    from ..spark.place import cold_root

    return cold_root(arguments.cold, arguments.location, storage_options(arguments))


def open_cold(arguments: argparse.Namespace) -> ColdAlone:
    """What ``--cold`` names, for those who need no Redis."""
    from ..jobs.cold_alone import ColdAlone
    from ..spark.lazy_engine import choose_engine

    root = cold_root(arguments)
    assert root is not None  # the caller saw that it was given
    return ColdAlone(root, choose_engine(arguments.engine, root.object_stores))


def open_log(arguments: argparse.Namespace) -> Lakelog:
    """The log at ``--dir``, or at ``--redis`` and ``--cold``.

    Raises:
        InvalidArgumentError: neither was given, or both.
    """
    import logging

    from ..lakelog import Lakelog

    logging.basicConfig(
        level=logging.INFO if arguments.verbose else logging.ERROR,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if arguments.dir and (arguments.redis or arguments.cold):
        raise InvalidArgumentError("give --dir, or --redis and --cold, not both")
    if arguments.storage_option and not arguments.cold:
        raise InvalidArgumentError("--storage-option goes with --cold: it opens an object store")
    if arguments.dir:
        return Lakelog.embedded(arguments.dir, engine=arguments.engine)
    if arguments.redis:
        return Lakelog.connect(
            arguments.redis,
            arguments.cold,
            location=arguments.location,
            keyspace=arguments.keyspace,
            engine=arguments.engine,
            password_ref=arguments.password_ref,
            storage_options=storage_options(arguments),
        )
    raise InvalidArgumentError(
        "where is the log? Give --dir DIR for one with its own Redis (made when first used), or "
        "--redis URL and --cold ROOT; LAKELOG_DIR, LAKELOG_REDIS and LAKELOG_COLD do the same"
    )

"""Opening the log that the common options name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..cleanup.cold_only import ColdRoot
    from ..cold.place import ColdPlace
    from ..lakelog import Lakelog


def storage_options(arguments: argparse.Namespace) -> dict[str, str] | None:
    """What ``--storage-option`` says; None if it is not there.

    Raises:
        InvalidArgumentError: no NAME=VALUE, or a secret in clear.
    """
    from ..cold.store_options import parse_options

    return parse_options(arguments.storage_option) if arguments.storage_option else None


def cold_place(arguments: argparse.Namespace) -> ColdPlace:
    """Where ``--cold`` is; false where it was not given."""
    from ..cold.place import ColdPlace

    return ColdPlace.of(arguments.cold, arguments.location, storage_options(arguments))


def cold_root(arguments: argparse.Namespace) -> ColdRoot:
    """What ``--cold`` names, for those who need no Redis."""
    from ..cleanup.cold_only import PathRoot
    from ..spark.lazy_engine import choose_engine
    from ..spark.named.root import NamedRoot
    from ..spark.session import session

    place = cold_place(arguments)
    if place.storage is None:
        return NamedRoot(place, session)
    stores = place.storage.object_stores
    return PathRoot(place.storage, choose_engine(arguments.engine, stores))


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

"""Opening the log that the common options name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..lakelog import Lakelog


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
    if arguments.dir:
        return Lakelog.embedded(arguments.dir, engine=arguments.engine)
    if arguments.redis:
        return Lakelog.connect(
            arguments.redis,
            arguments.cold,
            keyspace=arguments.keyspace,
            engine=arguments.engine,
            password_ref=arguments.password_ref,
        )
    raise InvalidArgumentError(
        "where is the log? Give --dir DIR for one with its own Redis (made when first used), or "
        "--redis URL and --cold ROOT; LAKELOG_DIR, LAKELOG_REDIS and LAKELOG_COLD do the same"
    )

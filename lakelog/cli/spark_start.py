"""Where nothing is drawn, lines say that Spark starts: it takes as long as a hang would."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = "lakelog.spark.session"


@contextmanager
def spark_start_said(*, verbose: bool) -> Iterator[None]:
    """While a command runs, what the session says of its start goes to standard error.

    Not on a terminal, where a clock runs; nor with ``--verbose``, which shows it as a log.
    """
    if verbose or sys.stderr.isatty():
        yield
        return
    logger = logging.getLogger(_LOGGER)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("  %(message)s"))
    handler.addFilter(lambda record: record.levelno == logging.INFO)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]

"""Where stderr is no terminal, lines say that Spark starts."""

from __future__ import annotations

import logging

import pytest

from lakelog.cli.progress import spark_start_said

LOGGER = logging.getLogger("lakelog.spark.session")


def test_what_is_said_of_the_start_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with spark_start_said(verbose=False):
        LOGGER.info("Spark is starting")
        LOGGER.warning("of something else")
    LOGGER.info("Spark is starting again")
    assert capsys.readouterr().err == "  Spark is starting\n"
    assert (LOGGER.handlers, LOGGER.level, LOGGER.propagate) == ([], logging.NOTSET, True)


def test_a_log_that_is_shown_is_not_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    with spark_start_said(verbose=True):
        LOGGER.info("Spark is starting")
    assert capsys.readouterr().err == ""

"""``lakelog metrics``: what there is to measure of a log, as a table or for Prometheus."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from math import inf
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError, LakelogError
from .connect import no_topics, open_archived
from .options import Offer
from .output import Message, Table

if TYPE_CHECKING:
    from ..base.metrics import Measured
    from ..lakelog import Lakelog

_EPILOG = """\
Offsets, sizes and lags of every partition in both tiers, servers and groups, now; `lakelog help
metrics` lists them with their units, labels and Kafka's names. With --listen it serves
http://HOST:PORT/metrics until it is stopped (pip install 'lakelog[metrics]'), without a password.

examples:
  lakelog --dir ./log metrics
  lakelog --dir ./log metrics orders --output json
  lakelog --redis redis://host:6379 --cold s3://bucket/log metrics --listen 127.0.0.1:9464
  lakelog --dir ./log metrics --textfile /var/lib/node_exporter/lakelog.prom
"""


def add_metrics(offer: Offer) -> None:
    added = offer.command(
        _run, "Show what there is to measure of a log, once or to Prometheus.", _EPILOG
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    shown = added.add_mutually_exclusive_group()
    shown.add_argument("--listen", metavar="HOST:PORT", help="serve /metrics there until stopped")
    shown.add_argument(
        "--textfile", metavar="PATH", help="write them there once, for node_exporter"
    )


def _run(arguments: argparse.Namespace) -> Message | None:
    if arguments.listen is not None:
        _serve(arguments)
        return None
    if arguments.textfile is not None:
        return _write(arguments)
    with open_archived(arguments) as log:
        found = log.metrics(arguments.topics or None)
        empty = no_topics(log)
    rows = [{**one, "labels": dict(one["labels"])} for one in found.to_pylist()]
    shown = [
        {
            **one,
            "labels": " ".join(f"{name}={value}" for name, value in one["labels"].items()),
            "value": int(one["value"]) if one["value"].is_integer() else one["value"],
        }
        for one in rows
    ]
    return Message(Table(shown, ["metric", "labels", "value", "unit"], empty=empty), rows)


def _write(arguments: argparse.Namespace) -> Message:
    from ..operate.metrics.exposition import Collector, registry_of, write_textfile

    with open_archived(arguments) as log:
        measured = _look(log, arguments)
    try:
        write_textfile(arguments.textfile, registry_of(Collector(lambda: measured)))
    except OSError as error:
        raise InvalidArgumentError(
            f"the metrics cannot be written to {arguments.textfile}: {error.strerror}. Name a file "
            "in a folder that is there and that this user may write to",
            path=arguments.textfile,
        ) from error
    return Message(f"written to {arguments.textfile}", {"textfile": arguments.textfile})


def _serve(arguments: argparse.Namespace) -> None:
    import threading

    from ..base.address import Address
    from ..operate.metrics.exposition import METRICS, Collector, MetricsServer, Scrapes
    from .stop_signals import on_stop_signal

    if arguments.output != "text":
        raise InvalidArgumentError("--listen speaks Prometheus's form, it takes no --output")
    address = Address.parse(arguments.listen)
    with ExitStack() as opened:
        log: Lakelog | None = None

        def open_now() -> Lakelog:
            nonlocal log
            if log is None:
                log = opened.enter_context(open_archived(arguments))
            return log

        try:
            open_now()
        except LakelogError as error:
            if not error.retriable:
                raise
            _say_error(f"{type(error).__name__}: {error}")  # the next scrape opens it
        scrapes = Scrapes(lambda within_s: _look(open_now(), arguments, within_s), _say_error)
        server = MetricsServer(address, Collector(scrapes.measured, METRICS))
        arguments.abandoned = True  # a look may hang
        if not address.is_loopback:
            _say(
                f"warning: whoever reaches {address.host} reads the names of topics and groups and "
                "how much is in them, without a password. Listen at 127.0.0.1, or let a proxy ask "
                "for one"
            )
        stop = threading.Event()
        on_stop_signal(stop.set, stop.set)
        _say(f"serving http://{server.address}/metrics; Ctrl-C ends it")
        stop.wait()
        _say("stopped")


def _look(
    log: Lakelog, arguments: argparse.Namespace, cold_within_s: float = inf
) -> list[Measured]:
    names = arguments.topics
    topics = [log.topics.get(name) for name in names] if names else log.topics.list()
    return log.log_look.look(topics, cold_within_s)


def _say_error(error: str) -> None:
    _say(f"the log cannot be looked at: {error}" if error else "the log can be looked at again")


def _say(text: str) -> None:
    print(f"lakelog: {text}", file=sys.stderr, flush=True)

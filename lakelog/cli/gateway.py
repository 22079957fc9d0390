"""``lakelog gateway``: serves the log to Kafka's clients."""

from __future__ import annotations

import argparse
import sys

from ..base.text_table import counted
from .connect import open_log, say_what_is_logged
from .options import Offer
from .stop_signals import told_to_stop

_EPILOG = """\
A client needs one line, and finds everything else out:

  bootstrap.servers=127.0.0.1:9092

Any number of processes may serve the same log; on one machine they may listen on the same address.
A gateway needs no disk, and nothing is lost with it.

examples:
  lakelog --dir ./log gateway
  lakelog --redis redis://host:6379 --cold s3://bucket/log gateway --listen 127.0.0.1:19092
  lakelog --dir ./log gateway --create-topics --partitions 4
`lakelog help gateway` says what works with which client, and what differs from a broker.
"""


def add_gateway(offer: Offer) -> None:
    added = offer.command(_run, "Serve the log to Kafka's clients, until it is stopped.", _EPILOG)
    added.add_argument(
        "--listen", metavar="HOST:PORT", default="127.0.0.1:9092", help="default: %(default)s"
    )
    added.add_argument(
        "--advertise",
        metavar="HOST:PORT",
        help="what clients are told to connect to (default: where it listens)",
    )
    added.add_argument(
        "--create-topics", action="store_true", help="make topics that clients ask for"
    )
    added.add_argument(
        "--partitions",
        type=int,
        default=1,
        metavar="N",
        help="of topics that are made without a number (default: %(default)s)",
    )
    added.add_argument(
        "--max-connections", type=int, default=2_000, metavar="N", help="default: %(default)s"
    )


def _run(arguments: argparse.Namespace) -> None:
    say_what_is_logged(arguments)
    with (
        told_to_stop("the gateway", "clients send again what had no answer") as stop,
        open_log(arguments) as log,
        log.gateway(
            arguments.listen,
            advertise=arguments.advertise,
            creates_topics=arguments.create_topics,
            partitions=arguments.partitions,
            max_connections=arguments.max_connections,
        ) as gateway,
    ):
        _say(f"Kafka's clients: bootstrap.servers={gateway.bootstrap_servers}")
        while gateway.is_serving and not stop.wait(0.5):
            pass
        _say(f"{counted(gateway.connection_count, 'connection')} open at the end")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

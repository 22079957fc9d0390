"""``lakelog gateway``: serves the log to Kafka's clients; ``users`` are those who may log in."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..base.text_table import counted
from ..errors import InvalidArgumentError
from .connect import open_log, say_what_is_logged
from .options import Offer
from .output import Message, Table, row
from .stop_signals import told_to_stop

if TYPE_CHECKING:
    from ..gateway.users import ScramUsers

_EPILOG = """\
A client needs one line, and finds everything else out:

  bootstrap.servers=127.0.0.1:9092

Any number of processes may serve the same log; on one machine they may listen on the same address.
A gateway needs no disk, and nothing is lost with it. Who comes from other machines has to say who
it is: --sasl PLAIN are the users of Redis with their rights (`lakelog help acl`), --sasl
SCRAM-SHA-256 those of `lakelog gateway users`, with the rights of this command.

examples:
  lakelog --dir ./log gateway
  lakelog --redis redis://host:6379 --cold s3://bucket/log gateway --listen 127.0.0.1:19092
  lakelog --dir ./log gateway --create-topics --partitions 4
  lakelog --redis redis://host:6379 gateway --listen 0.0.0.0:9092 --advertise lake.example:9092 \\
      --tls-cert /etc/lake/cert.pem --tls-key /etc/lake/key.pem --sasl PLAIN
`lakelog help gateway` says what works with which client, and what differs from a broker.
"""

_USERS = """\
Users of the gateways of a keyspace, who log in by SCRAM. All of them have the rights of the
gateway. What is kept in Redis of a password is salted and hashed.

examples:
  lakelog --dir ./log gateway users set ada            asks for a password
  pass show lake/ada | lakelog --dir ./log gateway users set ada
  lakelog --dir ./log gateway users set ada --user-password-ref env:ADAS_PASSWORD
  lakelog --dir ./log gateway users list
  lakelog --dir ./log gateway users delete ada
"""

#: `scram.HASHES`; a test compares them.
SCRAMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def add_gateway(offer: Offer) -> None:
    added = offer.command(
        _run, "Serve the log to Kafka's clients, until it is stopped.", _EPILOG, makes_log=True
    )
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
    added.add_argument(
        "--metrics", metavar="HOST:PORT", help="serve this process's /metrics to Prometheus there"
    )
    _add_guards(added)
    subcommands = added.add_subparsers(metavar="[users]")
    users = subcommands.add_parser(
        "users",
        help="who may log in by SCRAM: set, list, delete",
        description="Who may log in to gateways by SCRAM.",
        epilog=_USERS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb = offer.verbs_below(users)
    setting = verb(
        "set", _set, "make a user, or give it another password", recorded="gateway users set"
    )
    setting.add_argument(
        "--user-password-ref",
        metavar="REF",
        help="where its password is: env:NAME, file:/PATH, databricks:SCOPE/KEY (default: a line "
        "of standard input; on a terminal it is asked for)",
    )
    verb("list", _list, "list the users")
    deleting = verb("delete", _delete, "delete a user", recorded="gateway users delete")
    for each in (setting, deleting):
        each.add_argument("name", metavar="NAME")
        each.add_argument(
            "--mechanism",
            action="append",
            dest="mechanisms",
            type=str.upper,
            choices=SCRAMS,
            help="repeatable; default: all",
        )


def _add_guards(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--sasl",
        action="append",
        default=[],
        metavar="MECHANISM",
        type=str.upper,
        choices=("PLAIN", *SCRAMS),
        help=f"have clients say who they are, by PLAIN, {' or '.join(SCRAMS)}; repeatable",
    )
    added.add_argument("--tls-cert", metavar="FILE", help="serve TLS with this certificate (PEM)")
    added.add_argument(
        "--tls-key", metavar="FILE", help="its key (default: in the file of the certificate)"
    )
    added.add_argument(
        "--tls-key-password-ref",
        metavar="REF",
        help="where the password of the key is: env:NAME, file:/PATH, databricks:SCOPE/KEY",
    )
    added.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="let in only clients that show a certificate which one of these signed",
    )
    added.add_argument(
        "--allow-plaintext",
        action="store_true",
        help="listen to other machines without TLS: whoever sees the network reads it all",
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
            sasl_mechanisms=tuple(dict.fromkeys(arguments.sasl)),
            tls_cert=arguments.tls_cert,
            tls_key=arguments.tls_key,
            tls_key_password_ref=arguments.tls_key_password_ref,
            tls_client_ca=arguments.tls_client_ca,
            allows_plaintext=arguments.allow_plaintext,
        ) as gateway,
    ):
        if arguments.metrics is not None:
            _serve_metrics(arguments.metrics)
        _say(f"Kafka's clients: bootstrap.servers={gateway.bootstrap_servers}")
        while gateway.is_serving and not stop.wait(0.5):
            pass
        _say(f"{counted(gateway.connection_count, 'connection')} open at the end")


def _serve_metrics(where: str) -> None:
    from ..base.address import Address
    from ..operate.metrics.exposition import Collector, MetricsServer

    server = MetricsServer(Address.parse(where), Collector())
    _say(f"metrics of this process: http://{server.address}/metrics")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# -- users -----------------------------------------------------------------------------------------


@contextmanager
def _users(arguments: argparse.Namespace) -> Iterator[ScramUsers]:
    with open_log(arguments) as log:
        from ..gateway.users import ScramUsers

        yield ScramUsers(log.hot)


def _set(arguments: argparse.Namespace) -> Message:
    mechanisms = _mechanisms(arguments)
    with _users(arguments) as users:
        from ..gateway.users import check_name

        check_name(arguments.name)
        users.set(
            arguments.name, _password(arguments.name, arguments.user_password_ref), mechanisms
        )
    told = {"name": arguments.name, "mechanisms": list(mechanisms)}
    return Message(f"{arguments.name} may log in by {' and '.join(mechanisms)}", told)


def _list(arguments: argparse.Namespace) -> Table:
    with _users(arguments) as users:
        found = users.list()
    rows = [row(user, "name mechanism iterations") for user in found]
    return Table(rows, empty="no users; `lakelog gateway users set NAME` makes one")


def _delete(arguments: argparse.Namespace) -> Message:
    mechanisms = _mechanisms(arguments)
    with _users(arguments) as users:
        was_there = users.delete(arguments.name, mechanisms)
    if not was_there:
        raise InvalidArgumentError(
            f"there is no user {arguments.name!r} with {' or '.join(mechanisms)}: `lakelog gateway "
            "users list` shows those there are",
            name="user",
            value=arguments.name,
        )
    told = {"name": arguments.name, "mechanisms": list(mechanisms)}
    return Message(f"{arguments.name} logs in no more by {' and '.join(mechanisms)}", told)


def _mechanisms(arguments: argparse.Namespace) -> tuple[str, ...]:
    return tuple(dict.fromkeys(arguments.mechanisms or SCRAMS))


def _password(name: str, reference: str | None) -> str:
    """The password that a user is to have.

    Raises:
        InvalidArgumentError: the two that were typed differ, or the reference names none.
    """
    if reference is not None:
        from ..base.secret_reference import resolve_secret

        return resolve_secret(reference, "--user-password-ref")
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}: ")
    if password != getpass.getpass("Again: "):
        raise InvalidArgumentError("the two passwords differ, so nothing was changed: try again")
    return password

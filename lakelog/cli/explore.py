"""``lakelog explore``: the explorer as a page of its own, for whoever has no notebook."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError, LakelogError, MissingExtraError
from .connect import open_archived
from .options import Offer
from .stop_signals import on_stop_signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..explore.explorer.widget import LogExplorer
    from ..explore.link import Link
    from ..explore.page.log_page import LogPage
    from ..explore.page.tables import GroupRow
    from ..lakelog import Lakelog
    from ..operate.group_lag import GroupLag

_EPILOG = """\
Topics with sizes, rates and what waits; their records, partitions, settings, schemas; groups. The
address in the browser names what is shown, so that it can be sent to a colleague:

  /orders           records of a topic          /orders/1/600     record 600 of partition 1
  /orders/~about    partitions, settings        /~groups          groups, and how far they are

Who opens it first needs the token; later a cookie has it. The page has the rights of this command
and changes nothing, but with --write a record can be sent again. Voilà serves it
(pip install 'lakelog[page]'): each visitor takes a Python of his own, of some 200 MB.

examples:
  lakelog --dir ./log explore
  lakelog --redis redis://host:6379 --cold s3://bucket/log explore --listen 127.0.0.1:8090
  lakelog --cold s3://bucket/log explore --token-ref env:LAKELOG_PAGE_TOKEN
"""

#: Tells a visitor's kernel which log it is.
_VARIABLE = "LAKELOG_PAGE"


def add_explore(offer: Offer) -> None:
    added = offer.command(_run, "Serve a page to look at the log with a browser.", _EPILOG)
    added.add_argument(
        "--listen", metavar="HOST:PORT", default="127.0.0.1:8090", help="default: %(default)s"
    )
    added.add_argument(
        "--token-ref",
        metavar="REF",
        help="where the token is: env:NAME, file:/PATH, databricks:SCOPE/KEY (default: a new one)",
    )
    added.add_argument("--write", action="store_true", help="let visitors send records again")


def _run(arguments: argparse.Namespace) -> None:
    from ..base.address import Address
    from ..base.secret_reference import resolve_secret

    try:
        from ..explore.page.server import serve
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the page needs {error.name}, which is not installed: pip install 'lakelog[page]'"
        ) from error
    if arguments.output != "text":
        raise InvalidArgumentError("explore serves a page, it takes no --output")
    address = Address.parse(arguments.listen)
    token = secrets.token_urlsafe(24)
    if arguments.token_ref is not None:
        token = resolve_secret(arguments.token_ref, "the token of the page")
    with open_archived(arguments) as log:  # it is there, and stays open
        if arguments.write and log.redis is None:
            raise InvalidArgumentError("--write needs --redis: the archive alone takes no records")
        given = {name: getattr(arguments, name) for name in _OF_LOG}
        os.environ[_VARIABLE] = json.dumps({**given, "cwd": str(Path.cwd())})

        def serving(url: str, stop: Any) -> None:
            on_stop_signal(stop, stop)
            asked = "" if arguments.token_ref else f"/?token={token}"
            _say(f"serving {url}{asked} (Ctrl-C ends it)")
            if not address.is_loopback:
                _say(
                    "warning: what is shown, and the token, pass the network in the clear. Listen "
                    "at 127.0.0.1, and let a proxy bring TLS"
                )

        serve(address, token, serving, is_verbose=arguments.verbose)
    _say("stopped")


#: What says which log it is, and how it is opened.
_OF_LOG = (
    *("dir", "redis", "cold", "location", "keyspace", "tenant", "password_ref", "storage_option"),
    *("engine", "verbose", "write"),
)


def page() -> Any:
    """The page of a visitor, in a kernel of its own; a sentence where the log cannot be opened."""
    import ipywidgets as widgets

    given = json.loads(os.environ[_VARIABLE])
    os.chdir(given.pop("cwd"))
    arguments = argparse.Namespace(**given)
    try:
        log = open_archived(arguments)
        return page_of(log, arguments.dir or str(log.place), write=arguments.write)
    except LakelogError as error:
        return widgets.Label(str(error))


def page_of(log: Lakelog, title: str, *, write: bool) -> LogPage:
    """The page of a log."""
    from ..explore.page.log_page import LogPage, PageSource

    def explore(link: Link) -> LogExplorer:
        begin = (link.name or None, link.partition, link.position, link.where)
        return log.explore(*begin, write=write)

    def lags(topics: Iterable[str] | None) -> Sequence[GroupLag]:
        return () if log.redis is None else log.group_lags(topics)

    return LogPage(
        PageSource(
            title,
            topics=lambda: log.topics.list(),
            status=lambda topics: log.status(topics),
            groups=lambda: _groups(log),
            lags=lags,
            explore=explore,
        )
    )


def _groups(log: Lakelog) -> Sequence[GroupRow]:
    from ..explore.page.tables import GroupRow

    if log.redis is None:
        return ()
    lags: dict[tuple[str, str], list[GroupLag]] = {}
    for lag in log.group_lags():
        lags.setdefault((lag.group_id, lag.group_type.value), []).append(lag)
    listed = [
        (one.group_id, one.group_type.value, one.state.value) for one in log.groups.list(None)
    ]
    return [
        GroupRow(group_id, kind, state, tuple(lags.get((group_id, kind), ())))
        for group_id, kind, state in listed
    ]


def _say(text: str) -> None:
    print(f"lakelog: {text}", file=sys.stderr, flush=True)

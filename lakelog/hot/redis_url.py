"""A Redis URL, and the arguments that redis-py makes a connection of."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlencode, urlsplit

import redis
from redis.connection import parse_url
from redis.exceptions import RedisError

from ..errors import InvalidArgumentError
from .foreign import ILLEGIBLE

SOCKET_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
MAX_CONNECTIONS = 32  # a server; a caller above it waits for one to come back

_TCP_OPTIONS = {
    "host": "localhost",
    "port": 6379,
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
    "socket_keepalive": True,
}

#: What of redis-py's parameters is lakelog's to choose, and why.
_OURS = {
    "decode_responses": "records are bytes, and stay so",
    "max_connections": "it opens as many as its readers wait on, and others at most "
    f"{MAX_CONNECTIONS} a server",
    "timeout": "a caller waits until a connection is free",
    "retry": "it tries again itself, where nothing is done twice",
    "redis_connect_func": "it loads its scripts when it connects",
}

#: The parameters of a URL that name files.
CERTIFICATE_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def connection_options(
    url: str, password: str | None = None, user: str | None = None
) -> tuple[dict[str, Any], bool]:
    """The arguments for redis-py, and whether the URL says that it is a Redis Cluster.

    Of one that names several hosts, those of the first.

    Args:
        password, user: in place of those in the URL.

    Raises:
        InvalidArgumentError: see `connection.connect`.
    """
    url = of_each_host(url)[0]
    parts = _split(url)
    if parts is None or parts.scheme not in {"redis", "rediss", "unix"}:
        raise InvalidArgumentError(
            f"{mask(url)!r} is not a Redis URL; write redis://host:6379/0, rediss://… for "
            "TLS, unix:///path, and add ?cluster=true for a Redis Cluster"
        )
    query = parse_qs(parts.query)
    is_cluster = query.pop("cluster", ["false"])[-1].lower() in {"true", "1", "yes"}
    if is_cluster and parts.scheme == "unix":
        raise InvalidArgumentError(
            f"{mask(url)!r} is a socket of one server, and the others of a Redis Cluster are not "
            "reached by it; give redis://host:port?cluster=true"
        )
    for name in sorted(_OURS.keys() & query.keys()):
        raise InvalidArgumentError(
            f"{mask(url)!r} has the parameter {name}, which is lakelog's to choose: {_OURS[name]}. "
            "Leave it out",
            name=name,
        )
    plain = f"{url.partition('?')[0]}?{urlencode(query, doseq=True)}"
    try:
        given = dict(parse_url(plain))  # type: ignore[no-untyped-call]
        options: dict[str, Any] = {
            "socket_timeout": SOCKET_TIMEOUT_S,
            **({} if parts.scheme == "unix" else _TCP_OPTIONS),
            **given,
        }
        if parts.scheme == "rediss":
            # Without this, redis-py before version 6 accepts a certificate for another name.
            options.setdefault("ssl_check_hostname", given.get("ssl_cert_reqs") != "none")
        if parts.scheme != "unix" and parts.path.strip("/"):
            int(parts.path.strip("/"))  # redis-py reads any other database as 0
        if password is not None:
            options["password"] = password
        if user is not None:
            options["username"] = user
        rest = dict(options)
        rest.pop("connection_class", redis.Connection)(**rest)  # can be made; does not connect
    except (*ILLEGIBLE, RedisError):
        # The error may quote a password that was not percent-encoded.
        raise InvalidArgumentError(
            f"{mask(url)!r} is not a Redis URL: its port, database or a parameter after '?' is "
            "none that redis-py takes. Percent-encode special characters in the password"
        ) from None
    return options, is_cluster


def of_each_host(url: str) -> list[str]:
    """A URL that names several hosts, as one for each."""
    scheme, slashes, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    network = re.split(r"[/?#]", rest, maxsplit=1)[0]
    credentials, at, hosts = network.rpartition("@")
    if not slashes or "," not in hosts:
        return [url]
    path = rest[len(network) :]
    return [f"{scheme}://{credentials}{at}{host}{path}" for host in hosts.split(",")]


def mask(url: object) -> str:
    """The URL without its password and parameters."""
    text = str(url)
    scheme, slashes, rest = text.partition("://") if "://" in text else ("", "", text)
    # Up to the last @, so that nothing is left of a password with odd characters.
    credentials, at, place = rest.rpartition("@")
    if "?" in credentials:
        return f"{scheme}{slashes}…"  # a parameter or a password; it cannot be told
    user, colon, _ = credentials.partition(":")
    return "".join((scheme, slashes, user, ":***" if colon else "", at, place.partition("?")[0]))


def _split(url: object) -> SplitResult | None:
    try:
        return urlsplit(url) if isinstance(url, str) else None
    except ValueError:  # such as a bracket of an IPv6 address that nothing closes
        return None

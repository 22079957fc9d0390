"""What is asked of a workspace: how far a cluster comes on the way to Redis, and a user's rights.

A few lines of Python's own library run on the cluster's driver: name, TCP and TLS. What needs the
password is tried by `lakelog.spark.reach`, once the wheel is there.

A right in Unity Catalog is held by the user, by a group the workspace names for that user, or by
everybody; an owner has all of them. Source: Databricks REST API, ``effective-permissions``, which
knows inherited ones.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from ...hot.reachability import Way, walk_of

_LIMIT = timedelta(minutes=2)

#: Prints one line of JSON: hops passed, and what the next one failed with.
_PROGRAM = """
import json, socket, ssl
host, port, is_tls, trusted, checked = {arguments}
passed, failed, error = [], None, None
def name():
    socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
def tcp():
    socket.create_connection((host, port), 5).close()
def tls():
    context = ssl.create_default_context(cafile=trusted)
    if not checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), 5) as plain:
        context.wrap_socket(plain, server_hostname=host).close()
for hop, go in [("name", name), ("TCP", tcp)] + ([("TLS", tls)] if is_tls else []):
    try:
        go()
    except OSError as caught:
        failed, error = hop, caught
        break
    passed.append(hop)
print(json.dumps(dict(passed=passed, failed=failed, kind=type(error).__name__, said=str(error),
                      code=getattr(error, "verify_code", None))))
"""

#: What a hop fails with that has a remedy of its own; all others are an `OSError`.
_KINDS: dict[str, type[OSError]] = {
    one.__name__: one
    for one in (
        ConnectionRefusedError,
        TimeoutError,
        FileNotFoundError,
        ssl.SSLCertVerificationError,
        ssl.SSLError,
        socket.gaierror,
    )
}


def reach_from_cluster(client: Any, cluster_id: str, url: str) -> Way:
    """The way from a running cluster to the first server of a URL, without a password.

    Args:
        client: a WorkspaceClient whose user may attach to the cluster.
        url: of Redis.

    Raises:
        InvalidArgumentError: the URL is not valid.
        DatabricksError: the cluster does not run, may not be attached to, or did not run the lines
            to their end.
        TimeoutError: it did not in time.
    """
    walk = walk_of(url)
    options = walk.options
    arguments = (
        options["host"],
        options["port"],
        walk.is_tls,
        options.get("ssl_ca_certs"),
        options.get("ssl_cert_reqs") != "none",
    )
    said = _run(client, cluster_id, _PROGRAM.format(arguments=repr(arguments)))
    found = json.loads(said)
    error = _KINDS.get(found["kind"], OSError)(found["said"])
    if isinstance(error, ssl.SSLCertVerificationError):
        error.verify_code = found["code"]
    return walk.after(tuple(found["passed"]), found["failed"], error)


def _run(client: Any, cluster_id: str, program: str) -> str:
    """What a program prints on a cluster's driver."""
    from databricks.sdk.errors.base import DatabricksError
    from databricks.sdk.service.compute import Language

    commands = client.command_execution
    context = commands.create_and_wait(
        cluster_id=cluster_id, language=Language.PYTHON, timeout=_LIMIT
    )
    try:
        done = commands.execute_and_wait(
            cluster_id=cluster_id,
            context_id=context.id,
            command=program,
            language=Language.PYTHON,
            timeout=_LIMIT,
        )
    finally:
        commands.destroy(cluster_id, context.id)
    results = done.results
    if results is None or results.data is None:
        why = results.summary or results.cause if results else "nothing came back"
        raise DatabricksError(f"cluster {cluster_id} did not run a few lines of Python: {why}")
    return str(results.data)


#: Not part of ALL PRIVILEGES, and not an owner's by itself.
_APART = frozenset({"EXTERNAL_USE_LOCATION", "EXTERNAL_USE_SCHEMA"})
_EVERYBODY = "account users"
_API = "/api/2.1/unity-catalog"


class User(Struct, frozen=True):
    """Who is logged in."""

    name: str
    groups: tuple[str, ...]
    entitlements: frozenset[str]

    @staticmethod
    def of(client: Any) -> User:
        me = client.api_client.do("GET", "/api/2.0/preview/scim/v2/Me")
        return User(
            me["userName"],
            tuple(group["display"] for group in me.get("groups", ())),
            frozenset(one["value"] for one in me.get("entitlements", ())),
        )

    @property
    def principals(self) -> frozenset[str]:
        return frozenset({self.name, _EVERYBODY, *self.groups})


class Rights(Struct, frozen=True):
    """Asks for a user's rights."""

    client: Any  # a WorkspaceClient
    user: User

    def missing(self, kind: str, securable: dict[str, Any], wanted: Sequence[str]) -> list[str]:
        """The privileges among `wanted` that the user lacks.

        Args:
            kind: ``catalog``, ``schema`` or ``external_location``.
            securable: as the API describes it.

        Raises:
            DatabricksError: the workspace refuses to say.
        """
        name = securable.get("full_name") or securable["name"]
        answer = self.client.api_client.do("GET", f"{_API}/effective-permissions/{kind}/{name}")
        held = {
            one["privilege"]
            for assignment in answer.get("privilege_assignments", ())
            if assignment["principal"] in self.user.principals
            for one in assignment["privileges"]
        }
        everything = "ALL_PRIVILEGES" in held or securable.get("owner") in self.user.principals
        return [one for one in wanted if one not in held and not (everything and one not in _APART)]

    def grant(self, kind: str, name: str, privileges: Sequence[str]) -> str:
        """The SQL that gives them."""
        spoken = ", ".join(one.replace("_", " ") for one in privileges)
        quoted = ".".join(f"`{part}`" for part in name.split("."))
        return f"GRANT {spoken} ON {kind.replace('_', ' ').upper()} {quoted} TO `{self.user.name}`"

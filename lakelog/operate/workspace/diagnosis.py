"""Whether a workspace lets its user have what the bundle deploys; each finding with its remedy.

Only asks. A right in Unity Catalog is held by the user, by a group the workspace names for that
user, or by everybody; an owner has all of them. Source: Databricks REST API,
``effective-permissions``, which knows inherited ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ...base.local_path import OBJECT_STORES, path_or_url
from ...errors import InvalidArgumentError, MissingExtraError
from ..diagnosis import BROKEN, MISSING, OK, RISKY, Finding, judged
from .deployment import Deployment

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_API = "/api/2.1/unity-catalog"

#: For how long a workspace that does not answer is asked again. The SDK's default is five minutes.
_PATIENCE_S = 20

#: What the bundle's grants give to who runs the jobs, as far as they do not own the schema.
_SCHEMA = ("USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY")
_LOCATION = ("CREATE_EXTERNAL_TABLE", "READ_FILES", "WRITE_FILES", "EXTERNAL_USE_LOCATION")

#: A node at least so large archives well; the smallest such one is proposed.
_CORES, _MEMORY_MB = 4, 14_000


def log_in(profile: str | None = None) -> WorkspaceClient:
    """A client with the login of the Databricks CLI, or what else the environment has.

    Args:
        profile: of ``~/.databrickscfg``; None for DATABRICKS_CONFIG_PROFILE, or the default one.

    Raises:
        MissingExtraError: databricks-sdk is not installed.
        InvalidArgumentError: there is no login.
    """
    try:
        from databricks.sdk import WorkspaceClient
        from databricks.sdk.core import Config
    except ImportError as error:
        raise MissingExtraError(
            "asking a Databricks workspace needs databricks-sdk: pip install 'lakelog[databricks]'"
        ) from error
    try:
        limits: dict[str, Any] = {
            "retry_timeout_seconds": _PATIENCE_S,
            "http_timeout_seconds": _PATIENCE_S,
        }
        return WorkspaceClient(config=Config(profile=profile, **limits))
    except ValueError as error:  # whatever its ways of logging in complain of
        raise InvalidArgumentError(
            f"there is no login to a Databricks workspace ({_first_line(error)}). Log in with "
            "databricks auth login --host https://WORKSPACE, or name a profile of "
            "~/.databrickscfg with --profile",
            name="profile",
            value=profile,
        ) from error


def diagnose_workspace(client: WorkspaceClient, deployment: Deployment) -> list[Finding]:
    """Looks at what a deployment needs of a workspace, as far as it is given.

    Args:
        client: logged in as who deploys; jobs run as the same unless a ``runner`` is given.
    """
    return list(_Look(client, deployment).findings())


class _Look:
    def __init__(self, client: Any, deployment: Deployment) -> None:
        self._client = client
        self._deployment = deployment

    def findings(self) -> Iterator[Finding]:
        from databricks.sdk.errors.base import DatabricksError

        try:
            user = User.of(self._client)
        except (
            DatabricksError,
            ValueError,
            OSError,
        ) as error:  # OSError: requests' and TimeoutError
            yield Finding(
                BROKEN,
                "login",
                f"{self._client.config.host}: {_first_line(error)}",
                f"databricks auth login --host {self._client.config.host}",
            )
            return
        yield Finding(OK, "login", f"{user.name} at {self._client.config.host}")
        self._rights = Rights(self._client, user)
        given = self._deployment
        looks: dict[str, tuple[bool, Callable[[], Iterator[Finding]]]] = {
            "node type": (bool(given.node_type_id or given.instance_pool_id), self._node_type),
            "clusters": (bool(given.node_type_id or given.instance_pool_id), self._clusters),
            "catalog": (bool(given.catalog), self._catalog),
            "schema": (bool(given.catalog), self._schema),
            "external location": (bool(given.external_location), self._location),
            "keys of tables": (bool(given.catalog), self._tables),
            "secret": (bool(given.redis_url), self._secret),
            "warehouse": (bool(given.warehouse_id), self._warehouse),
        }
        for what, (wanted, look) in looks.items():
            if not wanted:
                continue
            try:
                yield from look()
            except (DatabricksError, OSError) as error:
                yield Finding(
                    BROKEN, what, f"the workspace does not say: {_first_line(error)}", "see there"
                )

    # -- Unity Catalog -----------------------------------------------------------------------------

    def _catalog(self) -> Iterator[Finding]:
        name = self._deployment.catalog
        catalog = self._found(f"{_API}/catalogs/{name}")
        if catalog is None:
            yield Finding(
                BROKEN,
                "catalog",
                f"there is no catalog {name} that {self._user} may see",
                f"CREATE CATALOG `{name}`, or "
                + self._rights.grant("catalog", name, ["USE_CATALOG"]),
            )
            return
        wanted = ["USE_CATALOG"]
        if self._found(f"{_API}/schemas/{self._schema_name}") is None:
            wanted.append("CREATE_SCHEMA")
        yield self._held("catalog", catalog, wanted)

    def _schema(self) -> Iterator[Finding]:
        schema = self._found(f"{_API}/schemas/{self._schema_name}")
        if schema is None:
            yield Finding(
                OK, "schema", f"{self._schema_name} is not there yet: a deployment makes it"
            )
            return
        wanted = list(_SCHEMA)
        if self._deployment.external_location:
            wanted.append("EXTERNAL_USE_SCHEMA")  # for the keys of each table, once there are some
        held = self._held("schema", schema, wanted)
        yield held
        if held.state == OK and schema.get("owner") not in self._rights.user.principals:
            yield Finding(
                RISKY,
                "schema's owner",
                f"{schema.get('owner')}: a first deployment by somebody else fails at a schema "
                "that is there",
                "deploy with the variable owner as it was, or give another schema",
            )
        user, given = self._user, self._deployment
        yield from self._taken("schema", self._schema_name, given.may(user), "grants")
        files = f"{self._schema_name}.files"
        if self._found(f"{_API}/volumes/{files}") is not None:
            yield from self._taken("volume", files, given.may_use_files(user), "volume_grants")

    def _taken(
        self, kind: str, name: str, kept: dict[str, set[str]], variable: str
    ) -> Iterator[Finding]:
        """Grants that the bundle does not give: its lists are authoritative."""
        answer = self._found(f"{_API}/permissions/{kind}/{name}") or {}
        taken = [
            f"{one['principal']}: {', '.join(more).replace('_', ' ')}"
            for one in answer.get("privilege_assignments", ())
            if (more := sorted({*one["privileges"]} - kept.get(one["principal"], set())))
        ]
        if taken:
            yield Finding(
                RISKY,
                f"grants on {kind} {name}",
                f"the next deployment takes what its list does not name: {'; '.join(taken)}",
                f"add them to the variable {variable} in databricks.yml (external_use for EXTERNAL "
                "USE SCHEMA), unless they are there",
            )

    def _location(self) -> Iterator[Finding]:
        url = self._deployment.external_location
        try:
            is_url = path_or_url(url, "external location").partition("://")[0] in OBJECT_STORES
            flaw = "" if is_url else f"{url!r} is no URL of an object store"
        except InvalidArgumentError as error:
            flaw = error.message
        if flaw:
            mend = "give external_location as s3://…, abfss://… or gs://…"
            yield Finding(BROKEN, "external location", flaw, mend)
            return
        answer = self._client.api_client.do("GET", f"{_API}/external-locations")
        over = [
            one
            for one in answer.get("external_locations", ())
            if f"{url.rstrip('/')}/".startswith(f"{one['url'].rstrip('/')}/")
        ]
        if not over:
            yield Finding(
                BROKEN,
                "external location",
                f"none over {url} that {self._user} may see",
                f"CREATE EXTERNAL LOCATION lakelog URL '{url}' WITH (STORAGE CREDENTIAL …)",
            )
            return
        location = max(over, key=lambda one: len(one["url"]))
        yield self._held("external_location", location, _LOCATION)
        metastore = self._client.api_client.do("GET", f"{_API}/metastore_summary")
        yield judged(
            metastore.get("external_access_enabled", False),
            "external data access",
            "enabled on the metastore",
            "disabled on the metastore",
            "a metastore admin enables it: Catalog Explorer, Metastore details, External data "
            "access",
        )
        body = {"url": url, "operation": "PATH_READ_WRITE"}
        yield self._keys(f"keys of {url}", "temporary-path-credentials", body, BROKEN)

    def _tables(self) -> Iterator[Finding]:
        catalog, schema = self._deployment.catalog, self._deployment.schema
        query = {"catalog_name": catalog, "schema_name": schema}
        tables = (self._found(f"{_API}/tables", query) or {}).get("tables", [])
        table = next(
            (one for one in tables if one.get("table_type") in ("EXTERNAL", "MANAGED")), None
        )
        if table is None:
            yield Finding(OK, "keys of tables", f"{catalog}.{schema} has no table yet")
            return
        external = table["table_type"] == "EXTERNAL"
        body = {"table_id": table["table_id"], "operation": "READ"}
        # Without keys Spark reads a managed table; an external one lakelog itself.
        state = BROKEN if external else RISKY
        yield self._keys(
            f"keys of {table['full_name']}", "temporary-table-credentials", body, state
        )

    def _keys(self, what: str, path: str, body: dict[str, str], state: str) -> Finding:
        from databricks.sdk.errors.base import DatabricksError

        try:
            self._client.api_client.do("POST", f"{_API}/{path}", body=body)
        except DatabricksError as error:
            schema = self._rights.grant("schema", self._schema_name, ["EXTERNAL_USE_SCHEMA"])
            mend = (
                "the grants above; no table may be registered at or above this folder"
                if "url" in body
                else f"{schema}; external data access enabled on the metastore"
            )
            return Finding(state, what, _first_line(error), mend)
        return Finding(OK, what, "given out")

    @property
    def _schema_name(self) -> str:
        return f"{self._deployment.catalog}.{self._deployment.schema}"

    @property
    def _user(self) -> str:
        return self._rights.user.name

    def _held(self, kind: str, securable: dict[str, Any], wanted: Any) -> Finding:
        name = securable.get("full_name") or securable["name"]
        what = f"{kind.replace('_', ' ')} {name}"
        missing = self._rights.missing(kind, securable, wanted)
        lacks = ", ".join(missing).replace("_", " ")
        groups = ", ".join(self._rights.user.groups)
        return judged(
            not missing,
            what,
            ", ".join(wanted).replace("_", " "),
            f"neither {self._user} nor {groups} holds {lacks}"
            if groups
            else f"{self._user} lacks {lacks}",
            self._rights.grant(kind, name, missing),
        )

    # -- compute -----------------------------------------------------------------------------------

    def _node_type(self) -> Iterator[Finding]:
        given = self._deployment
        if given.instance_pool_id:
            pool = self._found(
                "/api/2.0/instance-pools/get", {"instance_pool_id": given.instance_pool_id}
            )
            yield judged(
                pool,
                "instance pool",
                given.instance_pool_id,
                f"no pool {given.instance_pool_id} to be seen",
                "databricks instance-pools list; CAN ATTACH TO on the pool",
            )
            return
        nodes = self._client.api_client.do("GET", "/api/2.1/clusters/list-node-types")["node_types"]
        if any(node["node_type_id"] == given.node_type_id for node in nodes):
            yield Finding(OK, "node type", given.node_type_id)
            return
        fit = [
            node
            for node in nodes
            if node.get("num_cores", 0) >= _CORES
            and node.get("memory_mb", 0) >= _MEMORY_MB
            and not node.get("num_gpus")
            and not node.get("is_deprecated")
        ]
        smallest = min(fit, key=lambda one: (one["num_cores"], one["memory_mb"]), default=None)
        proposed = smallest["node_type_id"] if smallest else "NODE_TYPE"
        yield Finding(
            BROKEN,
            "node type",
            f"this workspace's cloud has no {given.node_type_id}",
            f"--var node_type_id={proposed}",
        )

    def _clusters(self) -> Iterator[Finding]:
        policy_id = self._deployment.cluster_policy_id
        user = self._rights.user
        if policy_id:
            policy = self._found("/api/2.0/policies/clusters/get", {"policy_id": policy_id})
            yield judged(
                policy,
                "clusters",
                f"by policy {policy and policy['name']}",
                f"by policy {policy_id}, which {user.name} may not use",
                "databricks cluster-policies list; CAN USE on the policy",
            )
            return
        if "allow-cluster-create" in user.entitlements or "admins" in user.groups:
            yield Finding(OK, "clusters", f"{user.name} may create any")
            return
        answer = self._client.api_client.do("GET", "/api/2.0/policies/clusters/list")
        policies = answer.get("policies", [])
        of_policy = (
            f"--var cluster_policy_id={policies[0]['policy_id']} ({policies[0]['name']})"
            if policies
            else "CAN USE on a cluster policy, for cluster_policy_id"
        )
        yield Finding(
            BROKEN,
            "clusters",
            f"{user.name} may create none without a policy",
            f"{of_policy}; or the entitlement to create clusters, from a workspace admin",
        )

    # -- Redis -------------------------------------------------------------------------------------

    def _secret(self) -> Iterator[Finding]:
        from databricks.sdk.errors import NotFound, PermissionDenied

        try:
            secret = self._deployment.secret
        except InvalidArgumentError as error:
            yield Finding(BROKEN, "secret", error.message, "see the message")
            return
        if secret is None:
            yield Finding(OK, "secret", "none: Redis has no password")
            return
        scope, key = secret
        what = f"secret {scope}/{key}"
        put = f"databricks secrets put-secret {scope} {key}"
        try:
            answer = self._client.api_client.do(
                "GET", "/api/2.0/secrets/list", query={"scope": scope}
            )
        except NotFound:
            create = f"databricks secrets create-scope {scope} && {put}"
            yield Finding(BROKEN, what, f"there is no scope {scope}", create)
        except PermissionDenied:
            read = f"databricks secrets put-acl {scope} {self._user} READ"
            yield Finding(BROKEN, what, f"{self._user} may not read scope {scope}", read)
        else:
            there = any(one["key"] == key for one in answer.get("secrets", ()))
            yield judged(there, what, "is there", f"scope {scope} has no {key}", put)

    # -- what watches ------------------------------------------------------------------------------

    def _warehouse(self) -> Iterator[Finding]:
        number = self._deployment.warehouse_id
        warehouse = self._found(f"/api/2.0/sql/warehouses/{number}")
        yield judged(
            warehouse,
            "warehouse",
            str(warehouse and warehouse["name"]),
            f"no warehouse {number} that {self._user} may use",
            "databricks warehouses list; CAN USE on the warehouse",
        )

    def _found(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any] | None:
        """None where it is not there, or may not be seen."""
        from databricks.sdk.errors import BadRequest, NotFound, PermissionDenied

        try:
            found: dict[str, Any] = self._client.api_client.do("GET", path, query=query)
        except (NotFound, PermissionDenied):
            return None
        except BadRequest as error:
            if "does not exist" in str(error):
                return None
            raise
        return found


def not_looked_at(deployment: Deployment) -> list[Finding]:
    """What a deployment to dev or prod needs, and nothing was given to look at it with."""
    asked = (
        ("catalog", deployment.catalog, "--var catalog=CATALOG"),
        ("Redis", deployment.redis_url, "--var redis_url=rediss://HOST:6379"),
    )
    return [
        Finding(MISSING, what, "not looked at", mend) for what, given, mend in asked if not given
    ]


def _first_line(error: Exception) -> str:
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return said.partition(". Config: ")[0]  # the SDK tells its settings, too


#: Not part of ALL PRIVILEGES, and not an owner's by itself.
_APART = frozenset({"EXTERNAL_USE_LOCATION", "EXTERNAL_USE_SCHEMA"})
_EVERYBODY = "account users"


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

"""A stand-in for a Databricks workspace on loopback: what the CLI and the doctor ask of its API.

It refuses what a workspace refuses and matters here: a schema that is there already, a task on
two kinds of compute, a node type beside a pool. What it does not know it
answers with 404, and keeps in `unknown`.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from posixpath import dirname
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Json = dict[str, Any]


@dataclass(frozen=True)
class Refused(Exception):
    """What a workspace answers to what it does not do."""

    status: int
    code: str
    message: str


@dataclass(frozen=True)
class Asked:
    """A request, as a handler sees it."""

    user: str
    body: Json
    query: dict[str, str]
    raw: bytes = b""


@dataclass
class Workspace:
    """What a workspace holds. Who logs in with the token NAME is NAME@example.com."""

    groups: dict[str, list[str]] = field(default_factory=dict)  # by user; nobody is in admins
    entitlements: set[str] = field(default_factory=lambda: {"allow-cluster-create"})
    #: Clouds' names; Azure's first.
    node_types: list[Json] = field(
        default_factory=lambda: [
            {"node_type_id": "Standard_D4ds_v5", "num_cores": 4.0, "memory_mb": 16384}
        ]
    )
    policies: dict[str, str] = field(default_factory=dict)  # names of those one may use, by id
    serverless_notebooks: bool = True  # else `environment_key` on a notebook task is refused
    folders: dict[str, int] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    access: dict[str, list[Json]] = field(default_factory=dict)  # by "kind/id"
    jobs: dict[int, Json] = field(default_factory=dict)
    runs: dict[int, Json] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)  # by scope, then key
    catalogs: dict[str, Json] = field(default_factory=dict)
    schemas: dict[str, Json] = field(default_factory=dict)
    tables: dict[str, Json] = field(default_factory=dict)
    external_locations: list[Json] = field(default_factory=list)
    external_access: bool = True  # as the metastore says
    volumes: dict[str, Json] = field(default_factory=dict)
    pipelines: dict[str, Json] = field(default_factory=dict)
    alerts: dict[str, Json] = field(default_factory=dict)
    dashboards: dict[str, Json] = field(default_factory=dict)
    grants: dict[str, dict[str, set[str]]] = field(default_factory=dict)  # by "kind/name"
    #: Answers to further GETs by path, for what is only looked at; a `Refused` is raised.
    answers: dict[str, Json | Refused] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._last_id = 1000
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._answer(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128  # the CLI uploads all files at once
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Workspace:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def job(self, name: str) -> Json:
        """The settings of the one job with this name."""
        (found,) = [
            job["settings"] for job in self.jobs.values() if job["settings"]["name"] == name
        ]
        return dict(found)

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    # -- requests ----------------------------------------------------------------------------------

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        raw = handler.rfile.read(length)
        url = urlsplit(handler.path)
        path = unquote(url.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        user = handler.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            body = json.loads(raw) if raw.startswith(b"{") else {}
        except ValueError:
            body = {}
        asked = Asked(f"{user}@example.com", body, query, raw)
        status, answer = 200, b"{}"
        try:
            with self._lock:
                found = self._handle(handler.command, path, asked)
            answer = found if isinstance(found, bytes) else json.dumps(found).encode()
        except Refused as refused:
            status = refused.status
            said = {"error_code": refused.code, "message": refused.message}
            answer = json.dumps(said).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("X-Databricks-Org-Id", "900800700600")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer)

    def _handle(self, method: str, path: str, asked: Asked) -> Json | bytes:
        if path in self.answers:
            answer = self.answers[path]
            if isinstance(answer, Refused):
                raise answer
            return answer
        for prefix, handle in _ROUTES:
            if path.startswith(prefix):
                return handle(self, method, path.removeprefix(prefix).strip("/"), asked)
        self.unknown.append(f"{method} {path}")
        raise Refused(404, "ENDPOINT_NOT_FOUND", f"no API found for {method} {path}")

    # -- who ---------------------------------------------------------------------------------------

    def me(self, method: str, rest: str, asked: Asked) -> Json:
        groups = self.groups.get(asked.user, [])
        return {
            "id": asked.user,
            "userName": asked.user,
            "groups": [{"display": name, "value": name} for name in groups],
            "entitlements": [{"value": name} for name in sorted(self.entitlements)],
        }

    def permissions(self, method: str, rest: str, asked: Asked) -> Json:
        if method == "PUT":
            self.access[rest] = asked.body["access_control_list"]
        elif method == "PATCH":
            self.access.setdefault(rest, []).extend(asked.body["access_control_list"])
        listed = [
            {
                **{name: value for name, value in entry.items() if name != "permission_level"},
                "all_permissions": [
                    {"permission_level": entry["permission_level"], "inherited": False}
                ],
            }
            for entry in self.access.get(rest, [])
        ]
        return {"object_id": f"/{rest}", "access_control_list": listed}

    # -- files -------------------------------------------------------------------------------------

    def files_of(self, method: str, rest: str, asked: Asked) -> Json | bytes:
        path = (asked.body.get("path") or asked.query.get("path") or "").rstrip("/")
        if rest == "mkdirs":
            while path not in ("", "/"):
                self.folders.setdefault(path, self.new_id())
                path = dirname(path)
            return {}
        if rest == "delete":
            gone = [name for name in self.files if name == path or name.startswith(path + "/")]
            for name in gone:
                del self.files[name]
            if not gone and path not in self.folders:
                raise _missing(path)
            for name in [n for n in self.folders if n == path or n.startswith(path + "/")]:
                del self.folders[name]
            return {}
        if rest == "get-status":
            if path in self.folders:
                return {"path": path, "object_type": "DIRECTORY", "object_id": self.folders[path]}
            if path in self.files:
                return {"path": path, "object_type": _type(path), "object_id": hash(path)}
        if rest == "list" and path in self.folders:
            below = {
                name: ("DIRECTORY" if name in self.folders else _type(name))
                for name in (*self.folders, *self.files)
                if dirname(name) == path
            }
            return {
                "objects": [{"path": name, "object_type": kind} for name, kind in below.items()]
            }
        if rest == "export" and path in self.files:
            content = self.files[path]
            if asked.query.get("direct_download") == "true":
                return content
            return {"content": base64.b64encode(content).decode()}
        raise _missing(path)

    def import_file(self, method: str, rest: str, asked: Asked) -> Json:
        path = f"/{rest}"
        if dirname(path) not in self.folders:
            raise _missing(dirname(path))
        if path in self.files and asked.query.get("overwrite") != "true":
            raise Refused(409, "RESOURCE_ALREADY_EXISTS", f"{path} already exists")
        self.files[path] = asked.raw
        return {}

    def workspace_files(self, method: str, rest: str, asked: Asked) -> bytes:
        path = f"/{rest}"
        if path not in self.files:
            raise _missing(path)
        return self.files[path]

    # -- jobs --------------------------------------------------------------------------------------

    def jobs_of(self, method: str, rest: str, asked: Asked) -> Json:
        if rest == "create":
            self._check_job(asked.body)
            number = self.new_id()
            self.jobs[number] = {"settings": asked.body, "creator_user_name": asked.user}
            return {"job_id": number}
        if rest == "list":
            return {"jobs": [{"job_id": number, **job} for number, job in self.jobs.items()]}
        if rest.startswith("runs/"):
            return self._runs_of(rest, asked)
        number = int(asked.body.get("job_id") or asked.query.get("job_id") or 0)
        if number not in self.jobs:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Job {number} does not exist.")
        if rest == "run-now":
            run_id = self.new_id()
            self.runs[run_id] = self._run(run_id, number)
            return {"run_id": run_id, "number_in_job": run_id}
        if rest == "reset":
            self._check_job(asked.body["new_settings"])
            self.jobs[number]["settings"] = asked.body["new_settings"]
        elif rest == "delete":
            del self.jobs[number]
        elif rest == "get":
            return {"job_id": number, **self.jobs[number]}
        return {}

    def _run(self, run_id: int, job_id: int) -> Json:
        """A run that went well at once; a continuous job's goes on."""
        settings = self.jobs[job_id]["settings"]
        ended = {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"}
        return {
            "run_id": run_id,
            "job_id": job_id,
            "run_name": settings["name"],
            "run_page_url": f"{self.url}/jobs/{job_id}/runs/{run_id}",
            "state": {"life_cycle_state": "RUNNING"} if "continuous" in settings else ended,
            "tasks": [],
        }

    def _runs_of(self, rest: str, asked: Asked) -> Json:
        given = {**asked.query, **asked.body}
        if rest == "runs/list":
            active = [run for run in self.runs.values() if "result_state" not in run["state"]]
            return {"runs": [run for run in active if run["job_id"] == int(given["job_id"])]}
        run = self.runs[int(given["run_id"])]
        if rest == "runs/cancel":
            run["state"] = {"life_cycle_state": "TERMINATED", "result_state": "CANCELED"}
            return {}
        return run

    def _check_job(self, settings: Json) -> None:
        clusters = {
            one["job_cluster_key"]: one["new_cluster"] for one in settings.get("job_clusters", [])
        }
        environments = {one["environment_key"] for one in settings.get("environments", [])}
        for task in settings["tasks"]:
            name = f"task {task['task_key']} of {settings['name']}"
            compute = [key for key in ("environment_key", "job_cluster_key") if key in task]
            if len(compute) != 1:
                raise _invalid(f"{name} runs on {compute}: it must be one")
            if "environment_key" in task:
                if not self.serverless_notebooks:
                    raise _invalid(f"{name}: environment_key is not supported for notebook tasks")
                if task["environment_key"] not in environments or task.get("libraries"):
                    raise _invalid(
                        f"{name}: its environment is not defined, or has libraries beside"
                    )
            elif task["job_cluster_key"] not in clusters:
                raise _invalid(f"{name}: job_cluster_key {task['job_cluster_key']} is not defined")
        for cluster in clusters.values():
            if ("node_type_id" in cluster) == ("instance_pool_id" in cluster):
                raise _invalid("a cluster has a node type or an instance pool")
            if cluster.get("policy_id") == "":
                raise _invalid("'' is not a valid cluster policy ID")
        if "continuous" in settings and "schedule" in settings:
            raise _invalid("a continuous job has no schedule")

    # -- secrets -----------------------------------------------------------------------------------

    def secrets_of(self, method: str, rest: str, asked: Asked) -> Json:
        scope = asked.body.get("scope") or asked.query.get("scope") or ""
        if rest == "scopes/create":
            if scope in self.secrets:
                raise Refused(400, "RESOURCE_ALREADY_EXISTS", f"Scope {scope} already exists!")
            self.secrets[scope] = {}
            return {}
        if rest == "scopes/list":
            return {"scopes": [{"name": name} for name in self.secrets]}
        if scope not in self.secrets:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Scope {scope} does not exist!")
        if rest == "put":
            value = asked.body.get("string_value")
            if value is None:
                value = base64.b64decode(asked.body["bytes_value"]).decode()
            self.secrets[scope][asked.body["key"]] = value
        if rest == "list":
            readers = self.access.get(f"secrets/{scope}")
            if readers is not None and asked.user not in {one["principal"] for one in readers}:
                raise Refused(403, "PERMISSION_DENIED", f"{asked.user} has no READ on {scope}")
            return {"secrets": [{"key": key} for key in self.secrets[scope]]}
        if rest == "acls/put":
            self.access.setdefault(f"secrets/{scope}", []).append(
                {"principal": asked.body["principal"], "permission": asked.body["permission"]}
            )
        return {}

    # -- Unity Catalog -----------------------------------------------------------------------------

    def schemas_of(self, method: str, name: str, asked: Asked) -> Json:
        return self._securable(self.schemas, method, name, asked, ("catalog_name", "name"))

    def volumes_of(self, method: str, name: str, asked: Asked) -> Json:
        return self._securable(
            self.volumes, method, name, asked, ("catalog_name", "schema_name", "name")
        )

    def _securable(
        self, kept: dict[str, Json], method: str, name: str, asked: Asked, parts: tuple[str, ...]
    ) -> Json:
        if method == "POST":
            name = ".".join(asked.body[part] for part in parts)
            if name in kept:
                kind = "Schema" if kept is self.schemas else "Volume"
                raise Refused(
                    400, f"{kind.upper()}_ALREADY_EXISTS", f"{kind} '{name}' already exists"
                )
            kept[name] = {**asked.body, "full_name": name, "owner": asked.user}
            return kept[name]
        if name not in kept:
            raise Refused(404, "SCHEMA_DOES_NOT_EXIST", f"'{name}' does not exist.")
        if method == "PATCH":
            kept[name] |= asked.body
        if method == "DELETE":
            return kept.pop(name)
        return kept[name]

    def grants_of(self, method: str, rest: str, asked: Asked) -> Json:
        held = self.grants.setdefault(rest.lower(), {})
        for change in asked.body.get("changes", []):
            mine = held.setdefault(change["principal"], set())
            removed = set(change.get("remove", []))
            mine -= mine if "ALL_PRIVILEGES" in removed else removed
            mine |= set(change.get("add", []))
        return {
            "privilege_assignments": [
                {"principal": who, "privileges": sorted(what)} for who, what in held.items() if what
            ]
        }

    def catalogs_of(self, method: str, name: str, asked: Asked) -> Json:
        if name not in self.catalogs:
            raise Refused(404, "CATALOG_DOES_NOT_EXIST", f"Catalog '{name}' does not exist.")
        return {"name": name, **self.catalogs[name]}

    def effective_permissions(self, method: str, rest: str, asked: Asked) -> Json:
        """Its own and those of what it lies in."""
        kind, _, name = rest.partition("/")
        places = [rest]
        if kind == "schema":
            places.append(f"catalog/{name.partition('.')[0]}")
        listed = [
            {"principal": who, "privileges": [{"privilege": one} for one in sorted(what)]}
            for place in places
            for who, what in self.grants.get(place, {}).items()
        ]
        return {"privilege_assignments": listed}

    def held(self, user: str, kind: str, name: str) -> set[str]:
        """What a user may do to something, by themselves or their groups."""
        listed = self.effective_permissions("GET", f"{kind}/{name}", Asked(user, {}, {}))
        who = {user, "account users", *self.groups.get(user, [])}
        return {
            one["privilege"]
            for assignment in listed["privilege_assignments"]
            if assignment["principal"] in who
            for one in assignment["privileges"]
        }

    def locations_of(self, method: str, rest: str, asked: Asked) -> Json:
        return {"external_locations": self.external_locations}

    def metastore(self, method: str, rest: str, asked: Asked) -> Json:
        return {"name": "metastore", "external_access_enabled": self.external_access}

    def tables_of(self, method: str, rest: str, asked: Asked) -> Json:
        schema = f"{asked.query['catalog_name']}.{asked.query['schema_name']}"
        if schema not in self.schemas:
            raise Refused(404, "SCHEMA_DOES_NOT_EXIST", f"Schema '{schema}' does not exist.")
        found = [
            {"full_name": name, **table}
            for name, table in self.tables.items()
            if name.startswith(f"{schema}.")
        ]
        return {"tables": found}

    def path_keys(self, method: str, rest: str, asked: Asked) -> Json:
        """Denied at or above a registered table, as Unity Catalog does."""
        url = asked.body["url"].rstrip("/")
        for name, table in self.tables.items():
            if f"{table.get('storage_location', '')}/".startswith(f"{url}/"):
                raise _denied(f"{url} is at or above the location of table {name}")
        for location in self.external_locations:
            if f"{url}/".startswith(f"{location['url'].rstrip('/')}/"):
                self._check_external(asked.user, "external_location", location["name"])
                return {"expiration_time": 0}
        raise _denied(f"no external location over {url}")

    def table_keys(self, method: str, rest: str, asked: Asked) -> Json:
        for name, table in self.tables.items():
            if table["table_id"] == asked.body["table_id"]:
                self._check_external(asked.user, "schema", name.rpartition(".")[0])
                return {"expiration_time": 0}
        raise Refused(404, "TABLE_DOES_NOT_EXIST", "no such table")

    def _check_external(self, user: str, kind: str, name: str) -> None:
        wanted = {"schema": "EXTERNAL_USE_SCHEMA"}.get(kind, "EXTERNAL_USE_LOCATION")
        if not self.external_access:
            raise _denied("external data access is disabled on the metastore")
        if wanted not in self.held(user, kind, name):
            raise _denied(f"{user} does not have {wanted} on {kind} {name}")

    # -- compute -----------------------------------------------------------------------------------

    def node_types_of(self, method: str, rest: str, asked: Asked) -> Json:
        return {"node_types": self.node_types}

    def policies_of(self, method: str, rest: str, asked: Asked) -> Json:
        if rest == "list":
            listed = [{"policy_id": one, "name": name} for one, name in self.policies.items()]
            return {"policies": listed}
        number = asked.query["policy_id"]
        if number not in self.policies:
            raise _denied(f"{asked.user} may not use policy {number}")
        return {"policy_id": number, "name": self.policies[number]}

    # -- alerts and dashboards ---------------------------------------------------------------------

    def pipelines_of(self, method: str, number: str, asked: Asked) -> Json:
        if method == "POST":
            number = f"{self.new_id():032x}"
            self.pipelines[number] = asked.body
        elif number not in self.pipelines:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", number)
        elif method == "PUT":
            self.pipelines[number] = asked.body
        return {"pipeline_id": number, "name": "", "spec": self.pipelines[number]}

    def alerts_of(self, method: str, number: str, asked: Asked) -> Json:
        return self._kept(self.alerts, "id", method, number, asked)

    def dashboards_of(self, method: str, rest: str, asked: Asked) -> Json:
        number, _, published = rest.partition("/")
        if published:
            return {"display_name": "lakelog", "warehouse_id": asked.body.get("warehouse_id")}
        return self._kept(self.dashboards, "dashboard_id", method, number, asked)

    def _kept(
        self, kept: dict[str, Json], key: str, method: str, number: str, asked: Asked
    ) -> Json:
        if method == "POST":
            if not asked.body.get("warehouse_id"):
                raise _invalid("warehouse_id is required")
            number = f"{self.new_id():032x}"
            kept[number] = {**asked.body, key: number, "lifecycle_state": "ACTIVE", "etag": "1"}
        elif number not in kept:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", number)
        elif method == "PATCH":
            kept[number] |= asked.body
        elif method == "DELETE":
            return kept.pop(number)
        return kept[number]

    def nothing(self, method: str, rest: str, asked: Asked) -> Json:
        return {}


def _missing(path: str) -> Refused:
    return Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Path ({path}) doesn't exist.")


def _denied(message: str) -> Refused:
    return Refused(403, "PERMISSION_DENIED", message)


def _invalid(message: str) -> Refused:
    return Refused(400, "INVALID_PARAMETER_VALUE", message)


def _type(path: str) -> str:
    return "NOTEBOOK" if path.endswith(".ipynb") else "FILE"


_ROUTES: list[tuple[str, Callable[..., Json | bytes]]] = [
    ("/api/2.0/preview/scim/v2/Me", Workspace.me),
    ("/api/2.0/permissions/", Workspace.permissions),
    ("/api/2.0/workspace-files/import-file/", Workspace.import_file),
    ("/api/2.0/workspace-files/", Workspace.workspace_files),
    ("/api/2.0/workspace/", Workspace.files_of),
    ("/api/2.2/jobs/", Workspace.jobs_of),
    ("/api/2.0/secrets/", Workspace.secrets_of),
    ("/api/2.1/unity-catalog/schemas", Workspace.schemas_of),
    ("/api/2.1/unity-catalog/volumes", Workspace.volumes_of),
    ("/api/2.1/unity-catalog/permissions/", Workspace.grants_of),
    ("/api/2.1/unity-catalog/catalogs", Workspace.catalogs_of),
    ("/api/2.1/unity-catalog/effective-permissions/", Workspace.effective_permissions),
    ("/api/2.1/unity-catalog/external-locations", Workspace.locations_of),
    ("/api/2.1/unity-catalog/metastore_summary", Workspace.metastore),
    ("/api/2.1/unity-catalog/tables", Workspace.tables_of),
    ("/api/2.1/unity-catalog/temporary-path-credentials", Workspace.path_keys),
    ("/api/2.1/unity-catalog/temporary-table-credentials", Workspace.table_keys),
    ("/api/2.1/clusters/list-node-types", Workspace.node_types_of),
    ("/api/2.0/policies/clusters/", Workspace.policies_of),
    ("/api/2.0/pipelines", Workspace.pipelines_of),
    ("/api/2.0/alerts", Workspace.alerts_of),
    ("/api/2.0/lakeview/dashboards", Workspace.dashboards_of),
    ("/telemetry-ext", Workspace.nothing),
]

"""A stand-in for a workspace's Unity Catalog, on loopback: it vends credentials, as granted."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote

HOUR_S = 3600


#: What nobody may read anywhere.
SECRET, TOKEN = "vended secret", "vended token"


LOCATION, SCHEMA, SELECT = "EXTERNAL USE LOCATION", "EXTERNAL USE SCHEMA", "SELECT"

_API = "/api/2.1/unity-catalog"


@dataclass
class Registered:
    """A table that the catalog knows."""

    url: str
    table_id: str
    latest: int | None = None  # version; None: it is not asked for versions
    staged: dict[int, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)


class Workspace:
    """The calls of the REST API that are made here, with the catalog's own refusals.

    Keys for a path above a registered table are denied; those of a table, or of its path, want
    `SCHEMA`; other paths `LOCATION`.
    """

    def __init__(self) -> None:
        self.lasts_s = HOUR_S
        self.kind = "aws_temp_credentials"
        self.refuses = False
        self.is_down = False
        self.grants = {LOCATION, SCHEMA, SELECT}
        self.tables: dict[str, Registered] = {}  # by full name
        self.asked: list[Any] = []
        self.looked: list[str] = []  # paths of questions that ask for no keys
        workspace = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                workspace.asked.append((self.path, self.headers["Authorization"], body))
                self.answer(*workspace.answer(self.path, body))

            def do_GET(self) -> None:  # also what the SDK wants to know about hosts
                workspace.looked.append(self.path)
                self.answer(*workspace.found(self.path))

            def answer(self, status: int, answer: dict[str, Any]) -> None:
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.is_down:
            return 503, {"message": "down"}
        missing = self._missing(path, body)
        if missing:
            return 403, {"error_code": "PERMISSION_DENIED", "message": missing}
        number = len(self.asked)
        given = {
            "aws_temp_credentials": {
                "access_key_id": f"vended-{number}",
                "secret_access_key": SECRET,
                "session_token": TOKEN,
            },
            "azure_user_delegation_sas": {"sas_token": "sig=vended"},
            "gcp_oauth_token": {"oauth_token": "vended"},
        }
        return 200, {
            self.kind: given[self.kind],
            "expiration_time": int((time.time() + self.lasts_s) * 1000),
        }

    def found(self, path: str) -> tuple[int, dict[str, Any]]:
        if self.is_down:
            return 503, {"message": "down"}
        path, _, query = path.removeprefix(_API).partition("?")
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts == ["tables"]:
            return self._listed(parse_qs(query))
        is_delta = parts[:2] == ["delta", "v1"]
        name = ".".join(parts[3::2] if is_delta else parts[-1:])
        table = self.tables.get(name)
        if table is None or (is_delta and table.latest is None):
            return 404, {"message": f"no {name}"}
        if SELECT not in self.grants:
            return 403, {"error_code": "PERMISSION_DENIED", "message": "no SELECT"}
        if not is_delta:
            return 200, {
                "storage_location": table.url,
                "table_id": table.table_id,
                "properties": table.properties,
            }
        return 200, {
            "metadata": {"location": table.url, "table-uuid": table.table_id},
            "latest-table-version": table.latest,
            "commits": [
                {"version": version, "file-name": name} for version, name in table.staged.items()
            ],
        }

    def _listed(self, asked: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        schema = f"{asked['catalog_name'][0]}.{asked['schema_name'][0]}."
        names = [name for name in self.tables if name.startswith(schema)]
        if not names:
            return 404, {"message": f"no schema {schema}"}
        at = int(asked.get("page_token", ["0"])[0])  # one a page
        more = str(at + 1) if at + 1 < len(names) else None
        properties = {"lakelog.topic.id": "an id"}
        found = {
            "name": names[at].removeprefix(schema),
            "properties": properties,
            "storage_location": self.tables[names[at]].url,
        }
        return 200, {"tables": [found], "next_page_token": more}

    def _missing(self, path: str, body: dict[str, Any]) -> str:
        if self.refuses:
            return "no EXTERNAL USE LOCATION"
        if path.endswith("temporary-table-credentials"):
            wanted = {SCHEMA, SELECT}
        else:
            asked = body["url"].rstrip("/")
            urls = [table.url.rstrip("/") for table in self.tables.values()]
            if any(url.startswith(f"{asked}/") for url in urls):
                return f"{asked} is the parent of a registered table"
            inside = any(asked == url or asked.startswith(f"{url}/") for url in urls)
            wanted = {LOCATION, SCHEMA} if inside else {LOCATION}
        return " and ".join(f"no {grant}" for grant in sorted(wanted - self.grants))

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

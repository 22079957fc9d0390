"""A stand-in for the Databricks workspace that vends credentials, on loopback."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOUR_S = 3600


#: What nobody may read anywhere.
SECRET, TOKEN = "vended secret", "vended token"


class Workspace:
    """The one call of a Databricks workspace's REST API that is made here."""

    def __init__(self) -> None:
        self.lasts_s = HOUR_S
        self.kind = "aws_temp_credentials"
        self.refuses = False
        self.asked: list[Any] = []
        workspace = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                workspace.asked.append((self.path, self.headers["Authorization"], body))
                status, answer = workspace.answer()
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self) -> None:  # what the SDK wants to know about hosts
                self.send_error(404)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self) -> tuple[int, dict[str, Any]]:
        if self.refuses:
            return 403, {"error_code": "PERMISSION_DENIED", "message": "no EXTERNAL USE LOCATION"}
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

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

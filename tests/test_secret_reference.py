"""References to secrets: read where they are needed, and clear about what is missing."""

from __future__ import annotations

import base64
import json
import sys
import threading
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from databricks.sdk import WorkspaceClient

from lakelog.base.secret_reference import check_secret_reference, resolve_secret
from lakelog.errors import InvalidArgumentError, MissingExtraError

SECRET = "s3cr3t-wörd"


class Workspace(BaseHTTPRequestHandler):
    """The two answers of a workspace that matter here: a secret, and that there is none."""

    def do_GET(self) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if asked == {"scope": "prod", "key": "redis"}:
            code, answer = 200, {"value": base64.b64encode(SECRET.encode()).decode()}
        else:
            code = 404
            answer = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Scope does not exist!"}
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A workspace on loopback that databricks-sdk's default login finds."""
    server = HTTPServer(("127.0.0.1", 0), Workspace)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("DATABRICKS_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("DATABRICKS_TOKEN", "a-token")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_variable_of_this_process(monkeypatch):
    monkeypatch.setenv("LAKE_PASSWORD", SECRET)
    assert resolve_secret("env:LAKE_PASSWORD", "passwordRef") == SECRET


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_there_says_how_to_set_it_on_executors(monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("LAKE_PASSWORD", value)
    with pytest.raises(
        InvalidArgumentError,
        match=r"LAKE_PASSWORD is (not set|empty) .* LAKE_PASSWORD=\{\{secrets/SCOPE/KEY\}\}",
    ) as refused:
        resolve_secret("env:LAKE_PASSWORD", "passwordRef")
    assert refused.value.value == "env:LAKE_PASSWORD"
    assert "those with PASSWORD or SECRET in the name" in refused.value.message


@pytest.mark.parametrize(
    "text", ["", SECRET, "env:", "env:A B", "ENV:A", "databricks:prod", "databricks:/redis",
             "databricks:prod/redis/more", "file:etc/passwd", "file:"]
)  # fmt: skip
def test_what_is_no_reference_is_not_repeated_since_it_may_be_the_secret(text):
    with pytest.raises(InvalidArgumentError, match="write env:NAME") as refused:
        check_secret_reference(text, "passwordRef")
    assert refused.value.message.startswith("passwordRef does not say where the secret is")
    assert SECRET not in str(refused.value)
    with pytest.raises(InvalidArgumentError, match="write env:NAME"):
        resolve_secret(text, "passwordRef")


def test_a_file_is_read_but_for_its_line_end(tmp_path):
    path = tmp_path / "a key"
    path.write_text(f"{SECRET}\n", "utf-8")
    assert resolve_secret(f"file:{path}", "key") == SECRET


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"x" * 70_000])
def test_a_file_that_holds_no_secret_is_not_repeated(tmp_path, content):
    path = tmp_path / "key"
    with pytest.raises(InvalidArgumentError, match="could not be read: No such file"):
        resolve_secret(f"file:{path}", "key")
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="is no file of a secret") as refused:
        resolve_secret(f"file:{path}", "key")
    assert "xxxx" not in str(refused.value)


def test_a_databricks_secret_by_the_sdk(workspace):
    assert resolve_secret("databricks:prod/redis", "passwordRef") == SECRET


def test_a_databricks_secret_that_is_not_there(workspace):
    with pytest.raises(
        InvalidArgumentError,
        match=r"'databricks:prod/other' could not be read .*: Scope does not exist!.*"
        r"READ the scope.*NAME=\{\{secrets/SCOPE/KEY\}\}",
    ):
        resolve_secret("databricks:prod/other", "passwordRef")


def test_a_databricks_secret_on_the_driver_of_a_cluster(monkeypatch):
    """Databricks' own pyspark has dbutils, and the driver a session to make it from."""
    asked = []

    class DBUtils:
        def __init__(self, session: object) -> None:
            self.secrets = self
            assert session is not None

        def get(self, scope: str, key: str) -> str:
            asked.append((scope, key))
            return SECRET

    module = types.ModuleType("pyspark.dbutils")
    module.DBUtils = DBUtils
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "pyspark.dbutils", module)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", staticmethod(lambda: object()))
    assert resolve_secret("databricks:prod/redis", "passwordRef") == SECRET
    assert asked == [("prod", "redis")]


def test_a_process_without_a_login_is_told_of_the_environment_variable(monkeypatch):
    def no_login(self: WorkspaceClient, **_: object) -> None:
        raise ValueError("default auth: cannot configure default credentials")

    monkeypatch.setattr(WorkspaceClient, "__init__", no_login)
    with pytest.raises(InvalidArgumentError, match=r"default credentials\..*refer to it as env:"):
        resolve_secret("databricks:prod/redis", "passwordRef")


def test_without_databricks_sdk_the_pip_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lakelog\[databricks\]'"):
        resolve_secret("databricks:prod/redis", "passwordRef")

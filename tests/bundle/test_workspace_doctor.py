"""`lakelog doctor --databricks`: each thing that is wrong in a workspace, with what mends it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from bundle_files import ROOT, read
from msgspec.structs import fields
from workspace_stand_in import Refused, Workspace

from lakelog.cli import main as cli
from lakelog.errors import InvalidArgumentError
from lakelog.jobs import doctor as jobs_doctor
from lakelog.jobs import parameters
from lakelog.operate.workspace import Deployment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = dict[str, dict[str, str]]
Doctor = Callable[..., ROWS]
LOCATION = "s3://bucket/lakelog"
ADA = "ada@example.com"


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """With all that ada needs for prod, tables in an external location too."""
    with Workspace() as running:
        running.catalogs["main"] = {"owner": "root@example.com"}
        running.grants["catalog/main"] = {ADA: {"USE_CATALOG", "CREATE_SCHEMA"}}
        running.external_locations = [
            {"name": "logs", "url": "s3://bucket", "owner": "root@example.com"}
        ]
        running.grants["external_location/logs"] = {
            ADA: {
                "CREATE_EXTERNAL_TABLE",
                "READ_FILES",
                "WRITE_FILES",
                "EXTERNAL_USE_LOCATION",
            }
        }
        running.secrets["lakelog"] = {"redis-password": "a secret word"}
        running.answers["/api/2.0/sql/warehouses/a1"] = {"id": "a1", "name": "starter"}
        yield running


@pytest.fixture
def doctor(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Doctor:
    """The findings of the workspace by what they are of; those of this machine come before."""
    for name in list(os.environ):
        if name.startswith(("DATABRICKS_", "BUNDLE_VAR_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DATABRICKS_HOST", workspace.url)
    monkeypatch.setenv("DATABRICKS_TOKEN", "ada")

    def run(*arguments: str) -> ROWS:
        capsys.readouterr()
        cli.main(["doctor", "--databricks", *arguments, "--output", "json"])
        rows = json.loads(capsys.readouterr().out)
        first = next(at for at, row in enumerate(rows) if row["what"] == "login")
        found = rows[first:]
        assert all(row["do"] for row in found if row["state"] != "ok"), "a remedy each"
        return {row["what"]: row for row in found}

    return run


GIVEN = ("--var", "catalog=main", "--var", f"external_location={LOCATION}")


def wrong(rows: ROWS) -> list[str]:
    return [what for what, row in rows.items() if row["state"] != "ok"]


def test_all_is_well_where_all_is_granted(doctor: Doctor, redis_url: str) -> None:
    rows = doctor(
        *GIVEN,
        *("--var", f"redis_url={redis_url}", "--var", "warehouse_id=a1"),
    )
    assert wrong(rows) == []
    assert list(rows) == [
        "login",
        "node type",
        "clusters",
        "catalog main",
        "schema",
        "external location logs",
        "external data access",
        f"keys of {LOCATION}",
        "keys of tables",
        "secret lakelog/redis-password",
        "warehouse",
    ]
    assert rows["login"]["found"].startswith(f"{ADA} at http://127.0.0.1:")


def test_what_was_not_given_is_asked_for(doctor: Doctor) -> None:
    rows = doctor()
    assert wrong(rows) == ["catalog", "Redis"]
    assert rows["catalog"]["do"] == "--var catalog=CATALOG"
    assert wrong(doctor("--var", "redis_url=redis://h:6379")) == ["catalog"]


def test_variables_are_taken_from_the_environment_as_the_cli_does(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNDLE_VAR_catalog", "elsewhere")
    assert "there is no catalog elsewhere" in doctor()["catalog"]["found"]
    assert "catalog main" in doctor("--var", "catalog=main")


@pytest.mark.parametrize(
    ("kind", "name", "privilege"),
    [
        ("catalog", "main", "USE_CATALOG"),
        ("catalog", "main", "CREATE_SCHEMA"),
        ("external_location", "logs", "CREATE_EXTERNAL_TABLE"),
        ("external_location", "logs", "READ_FILES"),
        ("external_location", "logs", "WRITE_FILES"),
        ("external_location", "logs", "EXTERNAL_USE_LOCATION"),
    ],
)
def test_a_missing_grant_is_named_with_the_sql_that_gives_it(
    kind: str, name: str, privilege: str, doctor: Doctor, workspace: Workspace
) -> None:
    workspace.grants[f"{kind}/{name}"][ADA].remove(privilege)
    rows = doctor(*GIVEN)
    row = rows[f"{kind.replace('_', ' ')} {name}"]
    spoken = privilege.replace("_", " ")
    place = kind.replace("_", " ").upper()
    assert (row["state"], row["found"]) == ("broken", f"{ADA} lacks {spoken}")
    assert row["do"] == f"GRANT {spoken} ON {place} `{name}` TO `{ADA}`"
    keys = rows[f"keys of {LOCATION}"]
    assert keys["state"] == ("broken" if privilege == "EXTERNAL_USE_LOCATION" else "ok")


@pytest.mark.parametrize("privilege", ["USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY"])
def test_a_missing_grant_on_a_schema_that_is_there(
    privilege: str, doctor: Doctor, workspace: Workspace
) -> None:
    workspace.schemas["main.lakelog"] = {"full_name": "main.lakelog", "owner": "ben@example.com"}
    held = {"USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY"}
    workspace.grants["schema/main.lakelog"] = {ADA: held - {privilege}}
    row = doctor("--var", "catalog=main")["schema main.lakelog"]
    assert row["found"] == f"{ADA} lacks {privilege.replace('_', ' ')}"
    workspace.grants["schema/main.lakelog"] = {ADA: held}
    rows = doctor("--var", "catalog=main")
    assert rows["schema main.lakelog"]["state"] == "ok"
    assert "ben@example.com" in rows["schema's owner"]["found"]


def test_grants_that_the_next_deployment_takes_are_named(
    doctor: Doctor, workspace: Workspace
) -> None:
    workspace.schemas["main.lakelog"] = {"full_name": "main.lakelog", "owner": ADA}
    workspace.volumes["main.lakelog.files"] = {"full_name": "main.lakelog.files", "owner": ADA}
    held = {"USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY"}
    schema = workspace.grants["schema/main.lakelog"] = {ADA: held}
    workspace.grants["volume/main.lakelog.files"] = {ADA: {"READ_VOLUME", "WRITE_VOLUME"}}
    assert not any("grants" in what for what in doctor("--var", "catalog=main"))
    schema[ADA] = {*held, "EXTERNAL_USE_SCHEMA"}
    schema["analysts"] = {"USE_SCHEMA", "SELECT"}
    workspace.grants["volume/main.lakelog.files"]["analysts"] = {"READ_VOLUME"}
    rows = doctor("--var", "catalog=main")
    row = rows["grants on schema main.lakelog"]
    assert row["state"] == "risky"
    assert f"{ADA}: EXTERNAL USE SCHEMA; analysts: SELECT, USE SCHEMA" in row["found"]
    assert "variable grants in databricks.yml" in row["do"]
    assert "analysts: READ VOLUME" in rows["grants on volume main.lakelog.files"]["found"]
    kept = ("--var", "external_use=EXTERNAL_USE_SCHEMA", "--var", "reader=analysts")
    assert "grants on schema main.lakelog" not in doctor("--var", "catalog=main", *kept)


def test_rights_come_from_groups_all_privileges_and_being_the_owner(
    doctor: Doctor, workspace: Workspace
) -> None:
    workspace.grants["catalog/main"] = {"platform": {"ALL_PRIVILEGES"}}
    row = doctor(*GIVEN)["catalog main"]
    assert row["state"] == "broken"
    workspace.groups[ADA] = ["platform"]
    assert doctor(*GIVEN)["catalog main"]["state"] == "ok"
    workspace.grants["catalog/main"] = {}
    row = doctor(*GIVEN)["catalog main"]
    assert row["found"] == f"neither {ADA} nor platform holds USE CATALOG, CREATE SCHEMA"
    workspace.catalogs["main"] = {"owner": "platform"}
    assert doctor(*GIVEN)["catalog main"]["state"] == "ok"
    # What opens data to others than Databricks is part of neither.
    workspace.grants["external_location/logs"] = {"platform": {"ALL_PRIVILEGES"}}
    row = doctor(*GIVEN)["external location logs"]
    assert row["found"].endswith("holds EXTERNAL USE LOCATION")


def test_keys_that_are_not_given_out(doctor: Doctor, workspace: Workspace) -> None:
    workspace.external_access = False
    rows = doctor(*GIVEN)
    assert wrong(rows) == ["external data access", f"keys of {LOCATION}", "Redis"]
    workspace.external_access = True
    workspace.schemas["main.lakelog"] = {"full_name": "main.lakelog", "owner": ADA}
    workspace.tables["main.lakelog.orders"] = {
        "table_id": "t-1",
        "table_type": "EXTERNAL",
        "storage_location": f"{LOCATION}/orders",
    }
    rows = doctor(*GIVEN)
    grant = f"GRANT EXTERNAL USE SCHEMA ON SCHEMA `main`.`lakelog` TO `{ADA}`"
    assert rows["schema main.lakelog"]["do"] == grant
    table = rows["keys of main.lakelog.orders"]
    assert table["state"] == "broken"
    assert table["do"].startswith(grant)
    assert (
        "at or above the location of table main.lakelog.orders"
        in (rows[f"keys of {LOCATION}"]["found"])
    )
    workspace.grants["schema/main.lakelog"] = {ADA: {"EXTERNAL_USE_SCHEMA"}}
    assert doctor(*GIVEN)["keys of main.lakelog.orders"]["state"] == "ok"
    workspace.tables["main.lakelog.orders"]["table_type"] = "MANAGED"  # Spark reads it anyway
    workspace.grants["schema/main.lakelog"] = {}
    rows = doctor("--var", "catalog=main")
    assert rows["keys of main.lakelog.orders"]["state"] == "risky"


def test_no_external_location_over_the_folder(doctor: Doctor, workspace: Workspace) -> None:
    workspace.external_locations = [{"name": "other", "url": "s3://bucket/lake"}]
    row = doctor(*GIVEN)["external location"]
    assert row["found"] == f"none over {LOCATION} that {ADA} may see"
    assert row["do"].startswith("CREATE EXTERNAL LOCATION")


@pytest.mark.parametrize(
    ("mistyped", "said"),
    [
        ("s3:/bucket/lakelog", "write s3://bucket/lakelog"),
        ("s3://bucket//lakelog", "write s3://bucket/lakelog"),
        ("s3a://bucket/lakelog", "write s3://bucket/lakelog"),
        ("dbfs:/lakelog", "write the URL of an external location"),
        ("/mnt/lakelog", "is no URL of an object store"),
        (" s3://bucket/lakelog", "without the blanks"),
    ],
)
def test_a_mistyped_folder_is_told_as_that(doctor: Doctor, mistyped: str, said: str) -> None:
    given = ("--var", "catalog=main", "--var", f"external_location={mistyped}")
    row = doctor(*given)["external location"]
    assert row["state"] == "broken"
    assert repr(mistyped) in row["found"]
    assert said in row["found"]


def test_a_warehouse_that_may_not_be_used(doctor: Doctor, workspace: Workspace) -> None:
    for answer in (
        Refused(403, "PERMISSION_DENIED", "no"),
        Refused(404, "RESOURCE_DOES_NOT_EXIST", "no"),
    ):
        workspace.answers["/api/2.0/sql/warehouses/a1"] = answer
        row = doctor("--var", "warehouse_id=a1")["warehouse"]
        assert (row["state"], row["found"]) == ("broken", f"no warehouse a1 that {ADA} may use")


def test_a_secret_that_is_not_there_or_may_not_be_read(
    doctor: Doctor, workspace: Workspace
) -> None:
    url = ("--var", "redis_url=redis://h:6379")
    what = "secret lakelog/redis-password"
    workspace.access["secrets/lakelog"] = [{"principal": "ben", "permission": "READ"}]
    assert doctor(*url)[what]["do"] == f"databricks secrets put-acl lakelog {ADA} READ"
    del workspace.access["secrets/lakelog"]
    workspace.secrets["lakelog"] = {}
    put = "databricks secrets put-secret lakelog redis-password"
    assert doctor(*url)[what]["do"] == put
    workspace.secrets.clear()
    assert doctor(*url)[what]["do"] == f"databricks secrets create-scope lakelog && {put}"
    rows = doctor(*url, "--var", "redis_password=")
    assert rows["secret"]["found"] == "none: Redis has no password"
    row = doctor(*url, "--var", "redis_password=hunter2")["secret"]
    assert row["state"] == "broken"
    assert "hunter2" not in str(row)


def test_compute_that_may_not_be_made(doctor: Doctor, workspace: Workspace) -> None:
    workspace.entitlements.clear()
    row = doctor()["clusters"]
    assert row["state"] == "broken"
    assert row["do"].startswith("CAN USE on a cluster policy")
    workspace.policies["9876"] = "jobs"
    assert doctor()["clusters"]["do"].startswith("--var cluster_policy_id=9876 (jobs)")
    assert doctor("--var", "cluster_policy_id=9876")["clusters"]["state"] == "ok"
    row = doctor("--var", "cluster_policy_id=1")["clusters"]
    assert row["found"] == f"by policy 1, which {ADA} may not use"
    workspace.groups[ADA] = ["admins"]
    assert doctor()["clusters"]["state"] == "ok"


def test_a_node_type_of_another_cloud_is_met_with_one_of_this(
    doctor: Doctor, workspace: Workspace
) -> None:
    workspace.node_types = [
        {"node_type_id": "i3.2xlarge", "num_cores": 8.0, "memory_mb": 62464},
        {"node_type_id": "g4dn.xlarge", "num_cores": 4.0, "memory_mb": 16384, "num_gpus": 1},
        {"node_type_id": "m4.large", "num_cores": 2.0, "memory_mb": 8192},
        {"node_type_id": "i3.xlarge", "num_cores": 4.0, "memory_mb": 31232},
    ]
    row = doctor()["node type"]
    assert row["found"] == "this workspace's cloud has no Standard_D4ds_v5"
    assert row["do"] == "--var node_type_id=i3.xlarge"
    assert doctor("--var", "node_type_id=i3.2xlarge")["node type"]["state"] == "ok"


def test_a_pool_is_asked_for_instead(doctor: Doctor, workspace: Workspace) -> None:
    given = ("--var", "instance_pool_id=1234", "--var", "node_type_id=")
    path = "/api/2.0/instance-pools/get"
    workspace.answers[path] = Refused(403, "PERMISSION_DENIED", "no")
    assert doctor(*given)["instance pool"]["state"] == "broken"
    workspace.answers[path] = {"instance_pool_id": "1234"}
    assert doctor(*given)["instance pool"]["state"] == "ok"


def test_a_login_that_is_refused(doctor: Doctor, workspace: Workspace) -> None:
    workspace.answers["/api/2.0/preview/scim/v2/Me"] = Refused(
        403, "PERMISSION_DENIED", "this token has expired"
    )
    rows = doctor(*GIVEN)
    assert list(rows) == ["login", "Redis"]
    assert rows["login"]["found"].endswith("this token has expired")
    assert rows["login"]["do"] == f"databricks auth login --host {workspace.url}"


def test_no_login_is_told_with_the_command(
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("DATABRICKS_TOKEN")
    monkeypatch.delenv("DATABRICKS_HOST")
    assert cli.main(["doctor", "--databricks"]) == 1
    assert "databricks auth login --host" in capsys.readouterr().err


def test_a_notebook_looks_too_with_what_its_job_was_told(
    doctor: Doctor, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"cold": "", "location": "", "directory": ""}
    given = parameters(redis_url="", redis_password_ref="", **place)
    assert "login" not in {finding.what for finding in jobs_doctor(given)}
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    given = parameters(redis_url="", redis_password_ref="", **{**place, "cold": "main.lakelog"})
    found = {finding.what: finding.state for finding in jobs_doctor(given)}
    names = ("login", "catalog main", "schema", "keys of tables")
    assert [found[name] for name in names] == ["ok"] * 4
    assert "Python" in repr(jobs_doctor(given))


def test_what_goes_with_it_is_refused_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--var", "catalog=main"]) == 1
    assert "go with --databricks" in capsys.readouterr().err


def test_variables_and_their_defaults_are_the_bundles() -> None:
    variables = read(ROOT / "databricks.yml")["variables"]
    watching = read(ROOT / "conf" / "watching" / "watching.yml")["variables"]
    for field in fields(Deployment):
        declared = (variables | watching)[field.name]
        assert declared.get("default", "") == field.default
    with pytest.raises(InvalidArgumentError, match="--var catlog is no variable"):
        Deployment.of(["catlog=main"], {})

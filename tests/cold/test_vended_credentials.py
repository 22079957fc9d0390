"""Credentials of Unity Catalog: asked for, kept, renewed in time, handed on to other processes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from contract import offsets
from made_up import MadeUpRows, archive
from workspace import SCHEMA, Registered, Workspace

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store import unity_catalog
from lakelog.cold.store.storage import Storage
from lakelog.cold.store.unity_catalog import PathKeys
from lakelog.engines.engine import InlineEngine
from lakelog.errors import ColdTierError
from lakelog.place import PathRoot

VENDED = {"CREDENTIALS": "unity-catalog"}


@pytest.fixture
def workspace(monkeypatch: Any) -> Iterator[Workspace]:
    found = Workspace()
    monkeypatch.setenv("DATABRICKS_HOST", f"http://127.0.0.1:{found.server.server_port}")
    monkeypatch.setenv("DATABRICKS_TOKEN", "login")
    yield found
    found.stop()


@pytest.fixture
def root() -> str:
    return f"s3://lakelog/{uuid4().hex}"


def key_of(storage: Storage) -> str:
    return storage.delta_options()["AWS_ACCESS_KEY_ID"]


def test_they_are_asked_for_once_and_given_to_all(workspace, root):
    storage = Storage(root, {**VENDED, "AWS_REGION": "eu-west-1"})
    assert [
        key_of(storage),
        key_of(storage),
        key_of(Storage(root, VENDED | {"AWS_REGION": "x"})),
    ] == ["vended-1"] * 3
    assert storage.spark_options()["fs.s3a.session.token"] == "vended token"
    assert workspace.asked == [
        (
            "/api/2.1/unity-catalog/temporary-path-credentials",
            "Bearer login",
            {"url": root, "operation": "PATH_READ_WRITE"},
        )
    ]
    assert "vended" not in repr(storage) + repr(unity_catalog.held_for(PathKeys(root)))


def test_they_are_renewed_before_they_end_also_by_an_open_table(workspace, root, s3_front, topic):
    workspace.lasts_s = 60  # less than what a file may take
    storage = Storage(root, {**VENDED, "AWS_ENDPOINT_URL": s3_front.url})
    table = PathTable(topic, storage, InlineEngine(), MadeUpRows())
    for end in (100, 200, 300):
        snapshot = table.apply(archive(topic, table.snapshot(), end), table.snapshot()).snapshot
    assert offsets(table, snapshot) == list(range(300))
    used = [
        headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        for headers in (
            {name.title(): value for name, value in headers.items()}
            for _, _, headers in s3_front.requests
        )
    ]
    numbers = [int(key.removeprefix("vended-")) for key in used]
    assert numbers[-1] > numbers[0] + 10
    commits = {
        number
        for number, (method, path, _) in zip(numbers, s3_front.requests, strict=True)
        if method == "PUT" and "_delta_log" in path
    }
    assert len(commits) == 4  # delta-rs, too, came with new ones each time


def test_a_registered_table_is_opened_by_keys_of_its_own(workspace, root, s3_server, topic):
    """Those of the root are denied as soon as any table below it is registered."""
    place = PathRoot(Storage(root, {**VENDED, "AWS_ENDPOINT_URL": s3_server.url}))
    path = place.storage.table_path(topic)
    workspace.tables["main.logs.orders"] = Registered(path, "an id")
    table = place.table(topic, MadeUpRows())
    snapshot = table.apply(archive(topic, table.snapshot(), 100), table.snapshot()).snapshot
    assert offsets(table, snapshot) == list(range(100))
    assert {body["url"] for _, _, body in workspace.asked} == {path}
    ((keys_of, _),) = place.to_hand_on([topic])
    assert keys_of == path
    with pytest.raises(ColdTierError, match="parent of a registered table"):
        place.catalogue()
    workspace.grants.remove(SCHEMA)
    other = PathRoot(Storage(f"{root}/", {**VENDED, "AWS_ENDPOINT_URL": s3_server.url}))
    unity_catalog.drop(PathKeys(path))
    with pytest.raises(ColdTierError, match="EXTERNAL USE SCHEMA on its schema too"):
        other.table(topic).snapshot()


def test_where_the_root_cannot_be_listed_the_catalog_says_which_tables_lie_there(
    workspace, root, s3_server, topic
):
    storage = Storage(root, {**VENDED, "AWS_ENDPOINT_URL": s3_server.url})
    place = PathRoot(storage, "main.logs")
    path = storage.table_path(topic)
    workspace.tables |= {
        "main.logs.orders": Registered(path, "an id"),
        "main.logs.somebodys": Registered(f"{root}/somebodys/table", "another id"),
        "main.logs.elsewhere": Registered(path.replace(root, f"{root}2"), "a third id"),
        "main.logs.deeper": Registered(f"{root}/somebodys/{uuid4()}/deeper", "a fourth id"),
    }
    table = place.table(topic, MadeUpRows())
    table.apply(archive(topic, table.snapshot(), 100), table.snapshot())
    table.mirror(topic)
    for only in (None, topic.name):
        found = place.catalogue(only=only)
        assert ([one.topic_id for one in found.tables], found.broken) == ([topic.topic_id], ())
    assert place.catalogue(only="others").tables == ()
    assert place.catalogue(known={topic.topic_id}).tables == ()


def test_what_is_handed_on_to_frames_and_tasks_has_half_an_hour_left(workspace, root):
    workspace.lasts_s = 20 * 60
    storage = Storage(root, {**VENDED, "AWS_REGION": "x"})
    assert [key_of(storage), key_of(storage)] == ["vended-1"] * 2
    assert storage.spark_options()["fs.s3a.access.key"] == "vended-2"
    workspace.lasts_s = 40 * 60
    handed_on = storage.to_hand_on()
    assert dict(handed_on.values)["AWS_ACCESS_KEY_ID"] == "vended-3"
    assert storage.spark_options()["fs.s3a.access.key"] == "vended-3"
    assert storage.to_hand_on() == handed_on
    assert Storage("s3://bucket", {"AWS_REGION": "x"}).to_hand_on() is None


def test_old_ones_are_used_while_new_ones_cannot_be_had(workspace, root, caplog):
    workspace.lasts_s = 600
    storage = Storage(root, {**VENDED, "AWS_REGION": "x"})
    assert key_of(storage) == "vended-1"
    workspace.refuses = True
    assert key_of(storage) == "vended-1"
    assert "could not be renewed" in caplog.text


def test_a_refusal_says_what_is_needed(workspace, root):
    workspace.refuses = True
    with pytest.raises(ColdTierError, match=r"no EXTERNAL USE LOCATION.*external location covers"):
        Storage(root, VENDED).filesystem()


def test_executors_use_what_the_driver_holds(workspace, root, monkeypatch):
    storage = Storage(root, {**VENDED, "AWS_REGION": "x"})
    assert key_of(storage) == "vended-1"
    pickled = pickle.dumps(storage)
    monkeypatch.setattr(unity_catalog, "_HELD", {})  # another process, without a login
    monkeypatch.delenv("DATABRICKS_HOST")
    monkeypatch.delenv("DATABRICKS_TOKEN")
    there = pickle.loads(pickled)
    assert there == storage
    assert key_of(there) == "vended-1"


def test_azure_gets_a_signature_and_what_nobody_can_use_is_said(workspace):
    workspace.kind = "azure_user_delegation_sas"
    storage = Storage(f"abfss://box@account.dfs.core.windows.net/{uuid4().hex}", VENDED)
    assert storage.delta_options()["AZURE_STORAGE_SAS_TOKEN"] == "sig=vended"
    workspace.kind = "gcp_oauth_token"
    with pytest.raises(ColdTierError, match="answered with gcp_oauth_token"):
        Storage(f"s3://bucket/{uuid4().hex}", VENDED).delta_options()

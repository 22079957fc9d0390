"""Jobs open an external location with keys that Unity Catalog gives, on clusters and serverless."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cold.store.store_options import workspace_options
from lakelog.errors import InvalidArgumentError
from lakelog.jobs import add_readings, connect_cold, parameters
from lakelog.place import PathRoot, cold_root

AZURE = "abfss://logs@account.dfs.core.windows.net/lakelog"


@pytest.fixture
def on_databricks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")


@pytest.mark.parametrize("location", [AZURE, "s3://bucket/lakelog"])
def test_the_keys_are_unity_catalogs(location: str, on_databricks: None) -> None:
    options = workspace_options(location)
    place = cold_root("main.lakelog", location, options)
    assert isinstance(place, PathRoot)
    assert place.storage.store_options.vended


def test_the_environments_keys_go_over_them(
    on_databricks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "a secret word")
    assert workspace_options(AZURE) is None


def test_tables_that_have_no_names_are_opened_alike(
    on_databricks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    alone = connect_cold(parameters(cold=AZURE, location="", directory=""))
    assert isinstance(alone.place.cold, PathRoot)
    assert alone.place.cold.storage.store_options.vended


@pytest.mark.parametrize("location", ["", "main.lakelog", "/data/lakelog", "gs://bucket/lakelog"])
def test_what_unity_catalog_gives_no_keys_to_is_opened_without(
    location: str, on_databricks: None
) -> None:
    assert workspace_options(location) is None


def test_elsewhere_a_location_is_opened_as_ever() -> None:
    assert workspace_options(AZURE) is None


@pytest.mark.parametrize("cold", ["lakelog", "a.b.c", "logs/lakelog", "./lakelog"])
def test_a_folder_that_goes_with_the_cluster_is_refused_with_the_legal_forms(
    cold: str, on_databricks: None
) -> None:
    with pytest.raises(InvalidArgumentError, match="lost with the cluster") as refused:
        cold_root(cold)
    for form in ("'catalog.schema'", "'s3://bucket/lakelog'", "'/local_disk0/lakelog'"):
        assert form in refused.value.message
    with pytest.raises(InvalidArgumentError, match=r"location=.* lost with the cluster"):
        cold_root("main.lakelog", cold)


def test_a_folder_by_its_whole_path_is_meant(on_databricks: None, tmp_path: Path) -> None:
    assert isinstance(cold_root(str(tmp_path)), PathRoot)


@pytest.mark.parametrize("cold", ["lakelog", "a.b.c"])
def test_elsewhere_a_bare_name_is_a_folder(
    cold: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(cold_root(cold), PathRoot)


def test_what_touches_tables_at_a_path_alone_starts_no_spark_there(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        for records in (80, 160, 240):
            add_readings(log, "readings", records)
            log.archive()
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    monkeypatch.delenv("LAKELOG_ENGINE", raising=False)

    def refuse(**_: object) -> None:
        raise AssertionError("a Spark was asked for")

    monkeypatch.setattr(importlib.import_module("lakelog.spark.session"), "session", refuse)
    place = {"cold": str(tmp_path / "cold"), "location": "", "directory": ""}
    with connect_cold(parameters(**place)) as alone:
        (report,) = alone.cleanup(["readings"], steps=["optimize"])
    assert report.optimized

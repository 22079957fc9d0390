"""Jobs open an external location with keys that Unity Catalog gives, on clusters and serverless."""

from __future__ import annotations

import pytest

from lakelog.jobs import connect_cold, parameters
from lakelog.jobs.connection import storage_options
from lakelog.spark.place import PathRoot, cold_root

AZURE = "abfss://logs@account.dfs.core.windows.net/lakelog"


@pytest.fixture
def on_databricks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")


@pytest.mark.parametrize("location", [AZURE, "s3://bucket/lakelog"])
def test_the_keys_are_unity_catalogs(location: str, on_databricks: None) -> None:
    options = storage_options(location)
    place = cold_root("main.lakelog", location, options)
    assert isinstance(place, PathRoot)
    assert place.storage.store_options.vended


def test_the_environments_keys_go_over_them(
    on_databricks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "a secret word")
    assert storage_options(AZURE) is None


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
    assert storage_options(location) is None


def test_elsewhere_a_location_is_opened_as_ever() -> None:
    assert storage_options(AZURE) is None

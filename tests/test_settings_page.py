"""The page of all settings is what the definitions say."""

from __future__ import annotations

from lakelog.values.config import SETTINGS
from lakelog.values.keyspace_defaults import BROKER_SETTINGS

from .settings_page import PAGE, page


def test_the_settings_page_is_as_the_definitions_have_it() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.settings_page writes it anew"


def test_the_settings_page_has_each_name_with_bounds_default_and_effect() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    assert sorted(row[0].strip("`") for row in rows) == sorted([*SETTINGS, *BROKER_SETTINGS])
    assert all(len(row) == 4 and all(row) for row in rows)

"""The page of all settings is what the definitions say."""

from __future__ import annotations

import re

from lakelog.values.config import SETTINGS
from lakelog.values.keyspace_defaults import BROKER_SETTINGS, SYNONYMS, KeyspaceDefaults

from .settings_page import PAGE, page


def test_the_settings_page_is_as_the_definitions_have_it() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.settings_page writes it anew"


def test_the_settings_page_has_each_name_with_bounds_default_and_effect() -> None:
    rows = [
        line.removeprefix("| ").removesuffix(" |").split(" | ")
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    for_all = {row[0].strip("`"): re.findall("`([^`]+)`", row[4]) for row in rows if len(row) == 5}
    assert for_all == {name: [*SYNONYMS.get(name, ())] for name in sorted(SETTINGS)}
    idle = re.findall("`([^`]+)`", PAGE.read_text("utf-8").split("change nothing:")[1])
    assert idle == [name for name in BROKER_SETTINGS if is_idle(name)]
    named = {*idle, *(name for names in for_all.values() for name in names)}
    own = [row[0].strip("`") for row in rows if len(row) == 4]
    assert own == [name for name in BROKER_SETTINGS if name not in named]
    assert all(all(row[:4]) for row in rows)


def is_idle(name: str) -> bool:
    return KeyspaceDefaults().effect(name).startswith("no effect")

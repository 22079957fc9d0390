"""Writes the page of all settings from their definitions: ``python -m tests.settings_page``."""

from __future__ import annotations

from pathlib import Path

from lakelog.values.config import DAY_MS, HOUR_MS, INT64_MAX, MINUTE_MS, SETTINGS, Setting
from lakelog.values.keyspace_defaults import BROKER_SETTINGS, KeyspaceDefaults

PAGE = Path(__file__).parent.parent / "lakelog" / "values" / "README.md"

_HEAD = """\
# All settings

Every name there is, with what it takes and does. `python -m tests.settings_page` writes this page
from the definitions. What differs from Kafka, and why, is in [settings](../README.md#settings). On
the command line `lakelog topics describe TOPIC --all` and `lakelog topics defaults --all` show what
is in effect.

Names in `ms` take units (`30s`, `12h`, `7d`), those in bytes too (`64KiB`, `1GiB`).

## Of a topic

Given to `topics create` and `topics alter` as `--config NAME=VALUE`, or several at once as for
Kafka, `--add-config NAME=VALUE,NAME=VALUE`; in Python to `topics.create` and `topics.alter`.

| setting | takes | default | effect |
|---|---|---|---|
"""

_FOR_ALL = """
## Of all topics

Given to `topics defaults` as `--config NAME=VALUE`. What a topic sets itself goes before it. Where
several names stand for one setting of a topic, the one in the smallest unit goes first.

| setting | takes | default | effect |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    defaults = KeyspaceDefaults()
    of_topics = [_row(one, one.doc) for _, one in sorted(SETTINGS.items())]
    of_all = [_row(one, _effect(name, defaults)) for name, one in BROKER_SETTINGS.items()]
    return _HEAD + "".join(of_topics) + _FOR_ALL + "".join(of_all)


def _effect(name: str, defaults: KeyspaceDefaults) -> str:
    effect = defaults.effect(name)
    if effect in SETTINGS:
        return f"`{effect}` of topics"
    if effect.startswith("no effect"):
        return effect
    return f"{effect}: {BROKER_SETTINGS[name].doc}"


def _row(setting: Setting, effect: str) -> str:
    default = f"`{setting.default}`{_readable(setting)}" if setting.default else "none"
    if setting.kafka_default is not None:
        default += f" (Kafka: `{setting.kafka_default}`)"
    cells = (f"`{setting.name}`", setting.legal, default, effect)
    return f"| {' | '.join(one.replace('|', chr(92) + '|') for one in cells)} |\n"


def _readable(setting: Setting) -> str:
    if not setting.name.endswith(".ms") or not setting.default.isdigit():
        return ""
    value = int(setting.default)
    if value == INT64_MAX:
        return ", no limit"
    for unit, name in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s")):
        if value and value % unit == 0:
            return f", {value // unit} {name}"
    return ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

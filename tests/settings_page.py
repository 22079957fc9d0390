"""Writes the page of all settings from their definitions: ``python -m tests.settings_page``."""

from __future__ import annotations

import textwrap
from pathlib import Path

from lakelog.values.config import DAY_MS, HOUR_MS, INT64_MAX, MINUTE_MS, SETTINGS, Setting
from lakelog.values.keyspace_defaults import BROKER_SETTINGS, SYNONYMS, KeyspaceDefaults

PAGE = Path(__file__).parent.parent / "lakelog" / "values" / "README.md"

_HEAD = """\
# All settings

Every name there is, with what it takes and does. `python -m tests.settings_page` writes this page
from the definitions. What differs from Kafka, and why, stands in [settings](../README.md#settings).
`lakelog topics describe TOPIC --all` and `lakelog topics defaults --all` show what is in effect.

Names in `ms` take units (`30s`, `12h`, `7d`), those in bytes too (`64KiB`, `1GiB`).

## Of a topic

Give these to `topics create` and `topics alter` as `--config NAME=VALUE`, or several at once as for
Kafka, `--add-config NAME=VALUE,NAME=VALUE`; in Python to `topics.create` and `topics.alter`. The
names in the last column set a default for all topics of a keyspace, by `topics defaults --config
NAME=VALUE`. A topic's own setting goes before them, and the smallest unit before others.
(`log.retention.ms`, `.minutes` and `.hours` refuse 0, as Kafka's do.)

| setting | takes | default | effect | for all topics |
|---|---|---|---|---|
"""

_FOR_ALL = """
## Of all topics

No topic sets these for itself; give them to `topics defaults`.

| setting | takes | default | effect |
|---|---|---|---|
"""

_NO_EFFECT = "These names of Kafka's are taken and change nothing:"


def page() -> str:
    """The whole page."""
    defaults = KeyspaceDefaults()
    effects = {name: defaults.effect(name) for name in BROKER_SETTINGS}
    idle = [f"`{name}`" for name, effect in effects.items() if effect.startswith("no effect")]
    of_topics = [
        _row(one, one.doc, ", ".join(f"`{name}`" for name in SYNONYMS.get(one.name, ())))
        for _, one in sorted(SETTINGS.items())
    ]
    of_all = [
        _row(BROKER_SETTINGS[name], f"{effect}: {BROKER_SETTINGS[name].doc}")
        for name, effect in effects.items()
        if effect not in SETTINGS and not effect.startswith("no effect")
    ]
    names = textwrap.fill(f"{_NO_EFFECT} {', '.join(idle)}.", 100, break_on_hyphens=False)
    return "".join([_HEAD, *of_topics, _FOR_ALL, *of_all, "\n", names, "\n"])


def _row(setting: Setting, *more: str) -> str:
    default = f"`{setting.default}`{_readable(setting)}" if setting.default else "none"
    if setting.kafka_default is not None:
        default += f" (Kafka: `{setting.kafka_default}`)"
    cells = (f"`{setting.name}`", setting.legal, default, *more)
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

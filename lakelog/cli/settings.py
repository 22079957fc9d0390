"""Settings given on the command line as NAME=VALUE."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidConfigError

#: Where another setting begins, in Kafka's ``a=1,b=2``: a value may have commas, and no ``=``.
_NEXT = re.compile(r",(?=\s*[A-Za-z][\w.]*\s*=)")


def add_config_option(added: Any, text: str = "a setting; repeatable") -> None:
    """``--config NAME=VALUE``, and ``--add-config`` as Kafka's commands have it."""
    added.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help=text)
    added.add_argument(
        "--add-config",
        action=_Several,
        dest="config",
        default=[],
        metavar="NAME=VALUE,…",
        help="several, as Kafka's commands take them",
    )


class _Several(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        given = [*getattr(namespace, self.dest), *_NEXT.split(values)]
        setattr(namespace, self.dest, given)


def parse_settings(option: str, pairs: Sequence[str]) -> dict[str, object | None]:
    """The settings as text, by name.

    Raises:
        InvalidConfigError: no ``=``, several at once, or a name twice.
    """
    settings: dict[str, object | None] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise InvalidConfigError(f"{option} {pair!r} should read NAME=VALUE", name=pair)
        if len(several := _NEXT.split(pair)) > 1:
            each = " ".join(f"{option} {one.strip()}" for one in several)
            kafkas = " or, as for Kafka, --add-config with all of them" * (option == "--config")
            raise InvalidConfigError(
                f"{option} {pair!r} gives {len(several)} settings, and takes one: {each}{kafkas}",
                name=name,
            )
        if value.startswith("[") and value.endswith("]"):  # Kafka's brackets around a list
            value = value[1:-1]
        if settings.setdefault(name, value) != value:
            raise InvalidConfigError(
                f"{option} gives {name} twice, as {settings[name]!r} and as {value!r}: give it "
                "once",
                name=name,
            )
    return settings


def parse_changes(pairs: Sequence[str], unset: Sequence[str]) -> dict[str, object | None]:
    """The changes that --config and --unset ask for; None means back to the default.

    Raises:
        InvalidConfigError: see `parse_settings`; or both ask for the same setting.
    """
    changes = parse_settings("--config", pairs)
    for name in unset:
        if name in changes:
            raise InvalidConfigError(
                f"--config sets {name} and --unset takes it back: give one of the two", name=name
            )
    return changes | dict.fromkeys(unset)

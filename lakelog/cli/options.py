"""What commands are offered by: parsers, options that several take, and what is typed for them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError, InvalidConfigError
from .output import FILE_FORMS

if TYPE_CHECKING:
    from datetime import timedelta

_RAW = argparse.RawDescriptionHelpFormatter


class Offer:
    """Where a command's file adds its parser, or one for each of its verbs."""

    def __init__(
        self, commands: Any, common: argparse.ArgumentParser, name: str, text: str
    ) -> None:
        self._commands = commands
        self._common = common
        self._name = name
        self._text = text  # in the list of commands

    @property
    def commands(self) -> Mapping[str, argparse.ArgumentParser]:
        """All parsers by the names of their commands."""
        found: Mapping[str, argparse.ArgumentParser] = self._commands.choices
        return found

    def command(self, run: Any, description: str, epilog: str, **defaults: Any) -> Any:
        """Adds it; ``defaults`` are further values of its arguments."""
        added = self._commands.add_parser(
            self._name,
            parents=[self._common],
            help=self._text,
            description=description,
            epilog=epilog,
            formatter_class=_RAW,
        )
        added.set_defaults(run=run, parser=added, **defaults)
        return added

    def verbs(self, description: str, epilog: str | None = None) -> Callable[..., Any]:
        """Adds a command that has verbs; what it gives adds one: its name, what runs it, what it
        does, and maybe an ``epilog`` and further values of its arguments.
        """
        added = self._commands.add_parser(
            self._name,
            help=self._text,
            description=description,
            epilog=epilog,
            formatter_class=_RAW,
        )
        return self.verbs_below(added)

    def verbs_below(self, parser: argparse.ArgumentParser) -> Callable[..., Any]:
        """Adds verbs to a command of its own, as `verbs` does."""
        verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

        def verb(
            name: str, run: Any, text: str, epilog: str | None = None, **defaults: Any
        ) -> argparse.ArgumentParser:
            parser: argparse.ArgumentParser = verbs.add_parser(
                name,
                parents=[self._common],
                help=text,
                description=f"{text[0].upper()}{text[1:]}.",
                epilog=epilog,
                formatter_class=_RAW,
            )
            parser.set_defaults(run=run, parser=parser, **defaults)
            return parser

        return verb


# -- the common options ----------------------------------------------------------------------------

#: Where the log is: the option, what it takes, the environment variable's end, and its help.
_PLACE = (
    ("--dir", "DIR", "DIR", "its directory"),
    ("--redis", "URL", "REDIS", "the Redis of the hot tier"),
    ("--cold", "ROOT", "COLD", "root of the cold tier: a folder, a URL, or CATALOG.SCHEMA"),
    (
        "--location",
        "URL",
        "LOCATION",
        "where the tables of --cold CATALOG.SCHEMA lie, if not with the catalog",
    ),
    (
        "--keyspace",
        "KEYSPACE",
        "KEYSPACE",
        "what the keys begin with (default: lakelog); with --cold alone, whose tables",
    ),
    ("--tenant", "TENANT", "TENANT", "whose topics are meant (default: those of no tenant)"),
    (
        "--password-ref",
        "REF",
        "PASSWORD_REF",
        "where the Redis password is: env:NAME, file:/PATH, databricks:SCOPE/KEY",
    ),
)


def add_common(target: argparse.ArgumentParser, *, suppress: bool) -> None:
    """The common options; in a command they default to those given before its name."""

    def default(fallback: object = None, variable: str = "") -> object:
        return argparse.SUPPRESS if suppress else os.environ.get(f"LAKELOG_{variable}", fallback)

    group = target.add_argument_group("where the log is, and how to answer")
    for name, metavar, variable, text in _PLACE:
        group.add_argument(name, metavar=metavar, default=default(None, variable), help=text)
    group.add_argument(
        "--storage-option",
        metavar="NAME=VALUE",
        action="append",
        default=default(),
        help="what opens an object store, over the environment (AWS_ENDPOINT_URL=…); repeatable",
    )
    group.add_argument(
        "--engine",
        choices=["auto", "spark", "inline"],
        default=default(None, "ENGINE"),
        help="what archiving, cleanup and --verify run on (default: auto, the Spark that is "
        "running; else this process, and a Spark for 2 GiB or more; of the demo: spark)",
    )
    group.add_argument(
        "--output",
        choices=["text", "json", *FILE_FORMS],
        default=default("text"),
        help="default: text; csv, parquet and arrow are of consume and sql, csv of grep too",
    )
    group.add_argument(
        "--verbose",
        action="store_true",
        default=default(False),
        help="logs, and tracebacks of errors",
    )


# -- what is typed ---------------------------------------------------------------------------------

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


def parse_duration(option: str, text: str, shape: str) -> timedelta:
    """A time such as 30s or 8h.

    Args:
        shape: what it should read, for the error.

    Raises:
        InvalidArgumentError: not a time.
    """
    from datetime import timedelta

    from ..base.unit_text import duration_ms

    found_ms = duration_ms(text)
    if found_ms is None:
        raise InvalidArgumentError(f"{option} {text!r} should read {shape}")
    return timedelta(milliseconds=found_ms)

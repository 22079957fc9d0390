"""Commands that have verbs, such as ``lakelog topics create``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

_RAW = argparse.RawDescriptionHelpFormatter


def verbs_of(
    commands: Any, common: argparse.ArgumentParser, noun: str, **texts: Any
) -> Callable[..., argparse.ArgumentParser]:
    """Adds a command; what it gives adds a verb of it: its name, what runs it, what it does.

    A verb may also have an ``epilog``, a ``description`` other than what it does, and defaults.
    """
    added = commands.add_parser(noun, formatter_class=_RAW, **texts)
    verbs = added.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(
        name: str,
        run: Any,
        text: str,
        epilog: str | None = None,
        *,
        description: str | None = None,
        **defaults: Any,
    ) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = verbs.add_parser(
            name,
            parents=[common],
            help=text,
            description=description or f"{text[0].upper()}{text[1:]}.",
            epilog=epilog,
            formatter_class=_RAW,
        )
        parser.set_defaults(run=run, **defaults)
        return parser

    return verb

"""``lakelog help``: the README.md files that are installed with the package, by topic."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping
from functools import partial
from typing import Any

from . import readme
from .output import Markdown, Message, Page, Table

_EPILOG = """\
A topic is a page or a section of a page; without one, all are listed. On a terminal the Markdown is
laid out; a pipe or a notebook gets it as it is written.

examples:
  lakelog help
  lakelog help spark
  lakelog help object stores
  lakelog help errors | less
"""

#: What is read with a checkout at hand, and not installed.
_ELSEWHERE = (
    "The repository also has README.md in notebooks/, conf/ (Databricks: the bundle), tests/, "
    "tests/benchmarks/ (performance) and tests/conformance/."
)


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "help",
        parents=[common],
        description="Print what the README files say of a topic.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topic", nargs="*", metavar="TOPIC", help="default: list all")
    added.set_defaults(run=partial(_run, commands.choices))


def _run(
    commands: Mapping[str, argparse.ArgumentParser], arguments: argparse.Namespace
) -> Markdown | Message | Page:
    pages = readme.pages()
    topics = readme.topics(pages)
    if not arguments.topic:
        return _listed(pages, topics, commands)
    asked = readme.anchor(" ".join(arguments.topic))
    if asked in topics:
        page, text = topics[asked]
        return Markdown(text, readme.without_links(text, page.path, topics))
    if asked in commands:
        return Message(commands[asked].format_help().rstrip())
    raise _unknown(" ".join(arguments.topic), asked, topics, commands)


def _listed(
    pages: Mapping[str, readme.Page],
    topics: Mapping[str, object],
    commands: Mapping[str, argparse.ArgumentParser],
) -> Page:
    sections = [name for name in topics if name not in pages]
    return Page(
        {
            "topics": Table([{"topic": page.name, "about": page.title} for page in pages.values()]),
            "sections": Message(
                f"Sections are topics too:\n{_filled(' '.join(sections))}", {"names": sections}
            ),
            "commands": Table(
                [
                    {"command": name, "does": command.description}
                    for name, command in commands.items()
                ]
            ),
            "more": Message(
                "lakelog help TOPIC prints a topic, lakelog COMMAND --help a command's options.\n"
                + textwrap.fill(_ELSEWHERE, 78)
            ),
        }
    )


def _unknown(
    asked: str, name: str, topics: Mapping[str, object], commands: Mapping[str, object]
) -> Exception:
    from ..errors import InvalidArgumentError

    close = [topic for topic in topics if name and (name in topic or topic in name)]
    names = close or [*topics, *(command for command in commands if command not in topics)]
    return InvalidArgumentError(
        f"there is no help on {asked!r}; "
        + ("close to it" if close else "topics and commands")
        + f" are:\n{_filled(' '.join(names))}\nlakelog help lists what each is about.",
        name="topic",
        value=asked,
    )


def _filled(words: str) -> str:
    return textwrap.fill(
        words, 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )

"""``lakelog help``: the README.md files that are installed with the package, by topic.

A page is known by the name of its folder, and a section of a page by its heading as a link's anchor
spells it: ``spark``, ``object-stores``.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from ..errors import InvalidArgumentError
from .options import Offer
from .output import Markdown, Message, Table, row
from .output import Page as Parts

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


def add_help(offer: Offer) -> None:
    run = partial(_run, offer.commands)
    added = offer.command(run, "Print what the README files say of a topic.", _EPILOG)
    added.add_argument("topic", nargs="*", metavar="TOPIC", help="default: list all")


def _run(
    commands: Mapping[str, argparse.ArgumentParser], arguments: argparse.Namespace
) -> Markdown | Message | Parts:
    installed = pages()
    known = topics(installed)
    if not arguments.topic:
        return _listed(installed, known, commands)
    typed = " ".join(arguments.topic)
    asked = anchor(typed)
    if asked in known:
        page, text = known[asked]
        return Markdown(text, without_links(text, page.path, known))
    if asked in commands:
        return Message(commands[asked].format_help().rstrip())
    close = [topic for topic in known if asked and (asked in topic or topic in asked)]
    names = close or [*known, *(command for command in commands if command not in known)]
    raise InvalidArgumentError(
        f"there is no help on {typed!r}; "
        + ("close to it" if close else "topics and commands")
        + f" are:\n{_filled(names)}\nlakelog help lists what each is about.",
        name="topic",
        value=typed,
    )


def _listed(
    installed: Mapping[str, Page],
    known: Collection[str],
    commands: Mapping[str, argparse.ArgumentParser],
) -> Parts:
    sections = [name for name in known if name not in installed]
    more = "lakelog help TOPIC prints a topic, lakelog COMMAND --help a command's options."
    return Parts(
        {
            "topics": Table([row(page, "topic=name about=title") for page in installed.values()]),
            "sections": Message(
                f"Sections are topics too:\n{_filled(sections)}", {"names": sections}
            ),
            "commands": Table(
                [{"command": name, "does": one.description} for name, one in commands.items()]
            ),
            "more": Message(f"{more}\n{textwrap.fill(_ELSEWHERE, 78)}"),
        }
    )


def _filled(words: Iterable[str]) -> str:
    return textwrap.fill(
        " ".join(words), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


# -- the pages -------------------------------------------------------------------------------------

_ROOT = Path(__file__).parents[1]

_HEADING = re.compile(r"(#+) (.+)")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


class Page(Struct, frozen=True):
    """One README.md."""

    path: str  # in the repository: lakelog/spark/README.md
    text: str

    @property
    def name(self) -> str:
        return posixpath.basename(posixpath.dirname(self.path))

    @property
    def title(self) -> str:
        return headings(self.text)[0].title

    @property
    def sections(self) -> dict[str, str]:
        """The sections by anchor, each with its text up to the next heading of its level."""
        lines = self.text.splitlines()
        found = headings(self.text)
        texts = {}
        for index, heading in enumerate(found[1:], 1):
            after = (other.line for other in found[index + 1 :] if other.level <= heading.level)
            texts[heading.anchor] = "\n".join(lines[heading.line : next(after, None)]).strip()
        return texts


class Heading(Struct, frozen=True):
    """A heading of a Markdown text."""

    line: int  # counted from 0
    level: int
    title: str

    @property
    def anchor(self) -> str:
        return anchor(self.title)


def headings(text: str) -> list[Heading]:
    """The headings in order; lines in fenced code do not count."""
    found = []
    is_code = False
    for number, line in enumerate(text.splitlines()):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and (match := _HEADING.fullmatch(line)):
            found.append(Heading(number, len(match[1]), match[2].strip()))
    return found


def anchor(title: str) -> str:
    """The text after ``#`` in a link to this heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def pages() -> dict[str, Page]:
    """All installed pages, by name: that of the whole package, then by path."""
    files = sorted(_ROOT.rglob("README.md"), key=lambda file: (file.parent != _ROOT, file))
    found = (
        Page(file.relative_to(_ROOT.parent).as_posix(), file.read_text("utf-8")) for file in files
    )
    return {page.name: page for page in found}


def topics(known: Mapping[str, Page]) -> dict[str, tuple[Page, str]]:
    """The page and the text of each topic, by name; a page hides a section of its name."""
    found = {name: (page, page.text.strip()) for name, page in known.items()}
    for page in known.values():
        for name, text in page.sections.items():
            found.setdefault(name, (page, text))
    return found


def without_links(text: str, path: str, names: Collection[str]) -> str:
    """The text for a terminal, where a link says which command or file to go to.

    Args:
        text: a page's, or a section's.
        path: its page's; links are relative to it.
        names: the topics that ``lakelog help`` prints.
    """

    def told(match: re.Match[str]) -> str:
        is_image, words, target = match.groups()
        if is_image or "://" in target:
            return words
        file, _, section = target.partition("#")
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        folder, name = posixpath.split(linked)
        topic = section or posixpath.basename(folder)
        if name == "README.md" and f"{folder}/".startswith("lakelog/") and topic in names:
            return f"{words} (`lakelog help {topic}`)"
        return f"{words} (`{linked}` in the repository)"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(told, part) for part in parts)

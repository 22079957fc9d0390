"""The name of a topic's table in a catalog.

A schema holds, for each topic, the table ``{name}`` and the views ``{name}_view`` and
``{name}_latest``. Catalogs allow fewer characters than Kafka and ignore case: Spark's own takes
letters, digits and ``_``; Unity Catalog forbids ``.`` and keeps names in lower case. So ``.`` and
``-`` of a topic become ``_``, and two topics may end up with one name. The second is refused, since
the table carries the topic id of the first. Kafka does not allow topics that differ only in ``.``
and ``_`` either.

A topic that was deleted keeps its table for a while. One that is made meanwhile, under the same
name in the catalog, has its id in the name of its table. That is decided when it is made: so all
processes know it, and whatever becomes of the other table, it never changes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...errors import InvalidArgumentError
from ...values.topic import Topic, catalog_name

#: Of a topic's id, in the name of its table. A table of that name that is another's is refused.
ID_DIGITS = 8

#: ``catalog.schema``.
SCHEMA = re.compile(r"([^.`\s/\\:]+)\.([^.`\s/\\:]+)")


class TableName(NamedTuple):
    """A table or view; as a string, the name as SQL takes it."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return quoted(*self)


def parse_schema(text: str) -> tuple[str, str]:
    """The catalog and the schema of ``catalog.schema``.

    Raises:
        InvalidArgumentError: it is not two names with a dot.
    """
    found = SCHEMA.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is not a schema of a catalog: give its two names with a dot, as in "
            "main.logs (Spark's own catalog is spark_catalog)"
        )
    return found[1], found[2]


def table_name(topic: Topic) -> str:
    """The name of a topic's own table within a schema."""
    name = catalog_name(topic.name)
    return f"{name}_{topic.topic_id.hex[:ID_DIGITS]}" if topic.named_by_id else name


def view_name(topic: str) -> str:
    """The name of the view that shows a topic's records decoded."""
    return f"{catalog_name(topic)}_view"


def latest_name(topic: str) -> str:
    """The name of the view of the last value of each key."""
    return f"{catalog_name(topic)}_latest"


def quoted(*parts: str) -> str:
    """A name of several parts as SQL takes it, whatever they hold."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def unquoted(name: str) -> list[str]:
    """The parts of what `quoted` gave."""
    return [part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", name)]


def quoted_text(text: str) -> str:
    """A string as a literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

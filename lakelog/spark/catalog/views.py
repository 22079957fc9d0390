"""Two views of a topic's table: its records decoded, and the last value of each key.

``{topic}_view`` has a row for each record, ``{topic}_latest`` one for each key. Both have these
columns and, after them, the topic's typed columns:

| column       | type                        |                                                     |
|--------------|-----------------------------|-----------------------------------------------------|
| partition    | int                         |                                                     |
| offset       | bigint                      |                                                     |
| timestamp    | timestamp                   |                                                     |
| key          | binary                      |                                                     |
| key_text     | string                      | the key, where it is UTF-8                          |
| value        | binary                      |                                                     |
| value_text   | string                      | the value, where it is UTF-8                        |
| value_json   | variant                     | the value, where it is JSON; not on older engines   |
| headers      | array<struct<key, value>>   |                                                     |
| headers_text | array<struct<key, value>>   | the headers, each value where it is UTF-8           |

A view is SQL over the table and nothing else: it sees each commit at once, needs no Redis, and a
filter on partition, offset or timestamp leaves out files as it does on the table.

Of a key in one partition the last record is that with the largest offset, which compaction keeps
too: the answer is the same before and after. A key is in two partitions when the topic grew
partitions, or producers placed it by hand; then the later timestamp counts, and of equal ones the
higher partition. Which record that is, is found by keys, offsets and timestamps alone; values are
then fetched by a join (tried: twice as fast as windows or ``max_by`` over whole records).

Runs on: driver.
"""

from __future__ import annotations

import hashlib
import logging
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from ...cold.by_name.entry import CatalogEntry, column_comments, look_up, run
from ...cold.by_name.names import TableName, latest_name, quoted, quoted_text, view_name
from ...cold.properties import TOPIC_ID_PROPERTY, TOPIC_NAME_PROPERTY
from ...cold.schema import COLUMN_COMMENTS
from ...errors import ColdTierRefusedError, CommitConflictError, ForeignTableError
from ...values.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

#: Of a view: what it was made of. It is made again only if that changed.
DIGEST_PROPERTY = "lakelog.view"

#: Others may make a view at the same time; each look tells what they did.
ATTEMPTS = 3

#: What makes VARIANT of a value; not every engine has it. By itself, the function reads one
#: document and ignores whatever follows. What may follow one within an array (a comma and another,
#: or a bracket) may not follow one within an object (a comma and a name, or a brace), so that
#: nothing follows what is read in both.
VARIANT = (
    "CASE WHEN try_parse_json(concat('{\"v\":', try_validate_utf8(value), '}')) IS NOT NULL "
    "THEN variant_get(try_parse_json(concat('[', try_validate_utf8(value), ']')), '$[0]') END"
)

#: Columns of the views: what each is made of, and what it means if the table does not say so.
DECODED = {
    "partition": ("partition", ""),
    "offset": ("offset", ""),
    "timestamp": ("timestamp", ""),
    "key": ("key", ""),
    "key_text": ("try_validate_utf8(key)", "Key as text; null if there is none or it is no UTF-8"),
    "value": ("value", ""),
    "value_text": (
        "try_validate_utf8(value)",
        "Value as text; null in a tombstone, and if it is no UTF-8",
    ),
    "value_json": (
        VARIANT,
        "Value as VARIANT; null in a tombstone, and if it is no JSON (or names a member twice)",
    ),
    "headers": ("headers", ""),
    "headers_text": (
        "transform(headers, header -> "
        "named_struct('key', header.key, 'value', try_validate_utf8(header.value)))",
        "Headers with their values as text; null where one is null or no UTF-8",
    ),
}

VIEW_COMMENT = (
    "Records of topic {topic} that are archived, decoded. Records below the log start are here "
    "until cleanup drops their segment. Made by lakelog, which replaces it"
)
LATEST_COMMENT = (
    "Last archived value of each key of topic {topic}: by offset within a partition, by timestamp "
    "across partitions; without deleted keys and records without a key. Made by lakelog, which "
    "replaces it"
)


def create_views(
    spark: SparkSession, table: TableName, topic: Topic
) -> tuple[TableName, TableName]:
    """Make the two views of a topic's table, in its schema; replace them if they are different.

    Raises:
        ForeignTableError: something else has the name of one; nothing was replaced.
        CommitConflictError: others keep making other ones.
        ColdTierError: no right to make them.
    """
    columns = column_comments(spark, table)
    typed = {
        name: comment
        for name, comment in columns.items()
        if name not in COLUMN_COMMENTS and name.lower() not in DECODED
    }
    decoded = dict(DECODED)
    if not _has_variant(spark, table):
        del decoded["value_json"]
    comments = {name: text or COLUMN_COMMENTS[name] for name, (_, text) in decoded.items()} | typed
    shown = [f"{sql} AS {name}" for name, (sql, _) in decoded.items()]
    shown += [quoted(name) for name in typed]

    view = table._replace(table=view_name(topic.name))
    latest = table._replace(table=latest_name(topic.name))
    head = ", ".join(
        f"{quoted(name)} COMMENT {quoted_text(text)}" if text else quoted(name)
        for name, text in comments.items()
    )
    wanted = {
        name: _View(
            f"({head}) COMMENT {quoted_text(comment.format(topic=topic.name))}",
            f"SELECT {', '.join(shown)} FROM {source}",
            topic,
        )
        for name, comment, source in (
            (view, VIEW_COMMENT, str(table)),
            (latest, LATEST_COMMENT, latest_rows(table)),
        )
    }
    there = {name: _free_or_own(spark, name, topic) for name in wanted}  # before any is made
    for name, made in wanted.items():
        _make(spark, name, made, there[name])
    return view, latest


class _View(Struct, frozen=True):
    """What a view is made of."""

    head: str  # its columns, and what is said of them
    select: str
    topic: Topic

    @property
    def digest(self) -> str:
        """Tells whether a view that is there was made of the same."""
        parts = (str(self.topic.topic_id), self.head, self.select)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def is_that(self, entry: CatalogEntry) -> bool:
        return entry.properties.get(DIGEST_PROPERTY) == self.digest

    def __str__(self) -> str:
        properties = {
            TOPIC_NAME_PROPERTY: self.topic.name,
            TOPIC_ID_PROPERTY: str(self.topic.topic_id),
            DIGEST_PROPERTY: self.digest,
        }
        pairs = ", ".join(f"{quoted_text(k)} = {quoted_text(v)}" for k, v in properties.items())
        return f"{self.head} TBLPROPERTIES ({pairs}) AS {self.select}"


def _make(spark: SparkSession, name: TableName, view: _View, entry: CatalogEntry | None) -> None:
    """Make or replace a view, unless it is that already. Others may do so at the same time."""
    for _ in range(ATTEMPTS):
        if entry is not None and view.is_that(entry):
            return
        if entry is None:
            run(spark, f"CREATE VIEW IF NOT EXISTS {name} {view}")
        else:
            _replace(spark, name, view)
        logger.info("%s is a view of topic %s", name, view.topic.name)
        entry = _free_or_own(spark, name, view.topic)
    if entry is None or not view.is_that(entry):
        raise CommitConflictError(
            f"others keep making the view {name}: after {ATTEMPTS} attempts it is another one. Run "
            "it again when they are done",
            path=str(name),
        )


def _replace(spark: SparkSession, name: TableName, view: _View) -> None:
    try:
        run(spark, f"CREATE OR REPLACE VIEW {name} {view}")
    except ColdTierRefusedError as error:
        if not re.search("not (?:yet )?supported|UNSUPPORTED", error.message):
            raise
        # Not every catalog can. For a moment there is none; a run that ends here is followed by one
        # that makes it.
        run(spark, f"DROP VIEW IF EXISTS {name}")
        run(spark, f"CREATE VIEW IF NOT EXISTS {name} {view}")


def latest_rows(table: TableName) -> str:
    """The rows of a table that are the last of their key, tombstones left out, as SQL."""
    # With names that no typed column has: the table's columns are selected unqualified.
    return (
        f"{table} JOIN (SELECT key AS {_KEY}, "
        f"max_by(struct(partition, offset), struct(timestamp, partition)) AS {_LAST} FROM "
        "(SELECT partition, key, max(offset) AS offset, max_by(timestamp, offset) AS timestamp "
        f"FROM {table} WHERE key IS NOT NULL GROUP BY partition, key) GROUP BY key) "
        f"ON key = {_KEY} AND partition = {_LAST}.partition "
        f"AND offset = {_LAST}.offset WHERE value IS NOT NULL"
    )


_KEY, _LAST = quoted("lakelog key"), quoted("lakelog last")


def _free_or_own(spark: SparkSession, name: TableName, topic: Topic) -> CatalogEntry | None:
    """The view of a topic that has the name; None if nothing has it.

    Raises:
        ForeignTableError: something else has it.
    """
    entry = look_up(spark, name)
    if entry is None or (entry.kind == "VIEW" and entry.topic_name == topic.name):
        return entry
    raise ForeignTableError(
        f"{name} should be a view of topic {topic.name!r}, but is {entry}. Register the topic in "
        "another schema, or drop what is there if nobody needs it",
        name=str(name),
    )


def _has_variant(spark: SparkSession, table: TableName) -> bool:
    """Analysed, not run."""
    try:
        return bool(spark.table(str(table)).selectExpr(VARIANT).columns)
    except Exception:
        return False

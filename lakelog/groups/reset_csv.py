"""Offsets of groups as CSV: what ``kafka-consumer-groups`` exports, and takes from a file.

| columns | of |
|---|---|
| ``topic,partition,offset`` | one group |
| ``group,topic,partition,offset`` | several |

There is no header. The number of columns of the first line says which it is, and all others must
have as many. Quotes stand around what holds a comma, a quote or a line break.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from ..errors import InvalidArgumentError
from ..values.offsets import check_offset
from ..values.topic import check_topic_name
from ..values.topic_partition import TopicPartition
from .group_values import check_group_id

Offsets = Mapping[TopicPartition, int]

_MAX_PARTITION = 2**31 - 1
_COLUMNS = {3: "topic,partition,offset", 4: "group,topic,partition,offset"}


def write_csv(groups: Mapping[str, Offsets]) -> str:
    """The offsets by group, topic and number; without the group if there is only one."""
    lines = []
    for group_id in sorted(groups):
        named = [group_id] if len(groups) != 1 else []
        for (topic, partition), offset in sorted(groups[group_id].items()):
            lines.append(_line([*named, topic, partition, offset]))
    return "".join(lines)


def read_csv(text: str) -> dict[str | None, dict[TopicPartition, int]]:
    """Group → the offsets that the file says; None stands for the one group of a file without.

    Raises:
        InvalidArgumentError: a line is wrong; the message says which, and nothing is returned.
    """
    found: dict[str | None, dict[TopicPartition, int]] = {}
    width = 0
    for line, row in _rows(text):
        width = width or len(row)
        if len(row) != width or width not in _COLUMNS:
            expected = _COLUMNS.get(width) or " or ".join(_COLUMNS.values())
            raise _wrong(line, f"it has {len(row)} columns; {expected} was expected")
        try:
            group_id = check_group_id(row[0]) if width == 4 else None
            topic, partition, number = (column.strip() for column in row[-3:])
            topic_partition = TopicPartition(
                check_topic_name(topic), _number(line, "partition", partition)
            )
            offset = check_offset(_number(line, "offset", number))
        except InvalidArgumentError as error:
            if error.name == "line":
                raise
            raise _wrong(line, error.message) from error
        if topic_partition.partition > _MAX_PARTITION:
            raise _wrong(line, f"{topic_partition.partition} is not the number of a partition")
        offsets = found.setdefault(group_id, {})
        if topic_partition in offsets:
            raise _wrong(line, f"it names {topic_partition} a second time")
        offsets[topic_partition] = offset
    if not found:
        raise InvalidArgumentError(
            f"the file has no lines; {' or '.join(_COLUMNS.values())} was expected"
        )
    return found


def _line(row: list[str | int]) -> str:
    text = io.StringIO()
    # Quotes stand around parts of the line's end alone; a group's id may hold either part of this.
    csv.writer(text, lineterminator="\r\n").writerow(row)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with the numbers of the lines where they end."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise _wrong(reader.line_num, str(error)) from error


def _number(line: int, what: str, text: str) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > 19:
        raise _wrong(line, f"{text[:40]!r} is not the number of {_article(what)}")
    return int(text)


def _article(what: str) -> str:
    return f"an {what}" if what[0] in "aeio" else f"a {what}"


def _wrong(line: int, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"line {line} of the file of offsets: {why}. Nothing was changed", name="line", value=line
    )

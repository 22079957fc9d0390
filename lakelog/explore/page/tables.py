"""What the page's tables hold, as HTML; every text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from msgspec import Struct

from ...operate.group_lag import GroupLag
from ...operate.status import PartitionStatus, Status
from ...values.config import SCHEMAS, SETTINGS
from ...values.topic import Topic
from ..link import GROUPS, RECORDS, Link
from ..table import Cell, Column, Line, html_table, rest_text
from ..words import count, duration, rate_unit, size

#: So many rows are drawn; a filter finds the others.
MOST_ROWS = 300

_NUMBER, _NAME = "ll-c-number", "ll-c-key"

#: A click on a row goes where its link leads. The script holds nothing from a log.
CLICK = escape(
    "var row = event.target.closest('tr[data-link]'), "
    "place = this.closest('.lakelog-page').querySelector('.lakelog-place input'); "
    "if (row && place) { place.value = row.dataset.link; "
    "place.dispatchEvent(new Event('input', {bubbles: true})); "
    "place.dispatchEvent(new Event('change', {bubbles: true})); }"
)


class GroupRow(Struct, frozen=True):
    """A group, as a line of the list.

    Args:
        lags: where it has committed something.
    """

    group_id: str
    group_type: str
    state: str
    lags: tuple[GroupLag, ...] = ()

    @property
    def members(self) -> int:
        return max((one.members for one in self.lags), default=0)


class TopicRow(Struct, frozen=True):
    """A topic, with all its partitions added up.

    Args:
        rate_per_second: appends since the look before; None: there was none.
    """

    topic: Topic
    partitions: tuple[PartitionStatus, ...]
    error: str = ""
    rate_per_second: float | None = None


def topic_rows(
    topics: Iterable[Topic], status: Status, before: Status | None = None
) -> list[TopicRow]:
    """The topics of a look, by name.

    Args:
        before: an earlier look, from which rates are told.
    """
    found: dict[str, list[PartitionStatus]] = {}
    for one in status.partitions:
        found.setdefault(one.topic_partition.topic, []).append(one)
    errors = {one.topic: str(one.error) for one in status.failures}
    ends = _log_ends(before) if before is not None else {}
    elapsed_s = 0.0 if before is None else (status.now_ms - before.now_ms) / 1000
    rows = []
    for topic in sorted(topics, key=lambda one: one.name):
        own = tuple(found.get(topic.name, ()))
        rate = None
        known = [one for one in own if one.topic_partition in ends]
        if elapsed_s > 0 and known:
            grown = sum(one.offsets.log_end - ends[one.topic_partition] for one in known)
            rate = max(0, grown) / elapsed_s  # a topic that was made anew begins at 0
        rows.append(TopicRow(topic, own, errors.get(topic.name, ""), rate))
    return rows


def _log_ends(status: Status) -> Mapping[object, int]:
    return {one.topic_partition: one.offsets.log_end for one in status.partitions}


def topics_html(rows: Sequence[TopicRow], lags: Sequence[GroupLag]) -> str:
    """All topics: sizes, rates, what waits, how far groups are behind."""
    behind: dict[str, int] = {}
    for lag in lags:
        name = lag.topic_partition.topic
        behind[name] = max(behind.get(name, 0), lag.lag_records)
    columns = [
        Column("topic", _NAME),
        *(Column(name, _NUMBER) for name in ("partitions", "records", "in Redis", "in Delta")),
        *(Column(name, _NUMBER) for name in ("rate", "not archived", "oldest waits")),
        Column("furthest group behind", _NUMBER),
        Column("cleanup"),
        Column("state"),
    ]
    lines = [
        _line(
            Link(RECORDS, row.topic.name),
            row.topic.name,
            count(row.topic.partitions),
            *_sums(row),
            *_waiting(row),
            count(behind[row.topic.name]) if row.topic.name in behind else "–",
            row.topic.config.text("cleanup.policy"),
            _state(row),
        )
        for row in rows[:MOST_ROWS]
    ]
    return _table(columns, lines, len(rows), none="no topics")


def _sums(row: TopicRow) -> list[str]:
    if not row.partitions:
        return ["–"] * 3
    records = sum(max(0, one.offsets.log_end - one.offsets.log_start) for one in row.partitions)
    compacts = "compact" in row.topic.config.text("cleanup.policy")
    hot = [one.hot_size_bytes for one in row.partitions if one.hot_size_bytes is not None]
    return [
        ("≤ " if compacts and records else "") + count(records),
        size(sum(hot)) if hot else "–",
        size(sum(one.cold_size_bytes for one in row.partitions)),
    ]


def _waiting(row: TopicRow) -> list[str]:
    rate = row.rate_per_second
    told = "–" if rate is None else rate_unit(rate).text(rate, "")
    waiting = [one.unarchived for one in row.partitions if one.unarchived is not None]
    ages = [one.archive_lag_ms for one in row.partitions if one.archive_lag_ms is not None]
    return [
        told.replace(" /", "/"),
        count(sum(waiting)) if waiting else "–",
        duration(max(ages)) if ages else "–",
    ]


def _state(row: TopicRow) -> str:
    if row.error:
        return row.error
    states = sorted({one.state for one in row.partitions} - {"ok"})
    return ", ".join(states) or "ok"


def partitions_html(row: TopicRow) -> str:
    """The partitions of a topic; a click shows the records of one."""
    columns = [
        *(Column(name, _NUMBER) for name in ("partition", "log start", "archived end")),
        *(Column(name, _NUMBER) for name in ("Redis from", "log end", "in Redis", "in Delta")),
        *(Column(name, _NUMBER) for name in ("segments", "not archived", "oldest waits")),
        Column("state"),
    ]
    lines = []
    for one in row.partitions:
        offsets, is_hot = one.offsets, not one.cold_only
        lines.append(
            _line(
                Link(RECORDS, row.topic.name, one.topic_partition.partition),
                f"{one.topic_partition.partition}",
                count(offsets.log_start),
                count(offsets.archived_end) if one.tiered else "–",
                count(offsets.local_log_start) if is_hot else "–",
                count(offsets.log_end),
                size(one.hot_size_bytes) if one.hot_size_bytes is not None else "–",
                size(one.cold_size_bytes) if one.tiered else "–",
                count(one.cold_segments) if one.tiered else "–",
                "–" if one.unarchived is None else count(one.unarchived),
                "–" if one.archive_lag_ms is None else duration(one.archive_lag_ms),
                one.state,
            )
        )
    return _table(columns, lines[:MOST_ROWS], len(lines), none=escape(row.error) or "no partitions")


def settings_html(topic: Topic) -> str:
    """The settings, those of the topic's own first, with what each means."""
    config = topic.config
    names = sorted(SETTINGS, key=lambda name: (config.source(name) == "default", name))
    columns = [Column("setting"), Column("value", "ll-c-headers"), Column("from"), Column("means")]
    lines = [
        Line([Cell(name), Cell(_brief(topic, name)), Cell(config.source(name)), Cell(doc)])
        for name in names
        for doc in (SETTINGS[name].doc,)
    ]
    return _table(columns, lines, len(lines), none="")


def _brief(topic: Topic, name: str) -> str:
    if name == SCHEMAS:
        return count(len(topic.config[SCHEMAS]), "schema") if topic.config[SCHEMAS] else ""
    return topic.config.text(name)


def schemas_html(topic: Topic) -> str:
    """What schemas of the topic's records are kept; empty if none are."""
    kept = topic.config[SCHEMAS]
    columns = [Column("id", _NUMBER), Column("kind"), Column("schema", "ll-c-schema")]
    lines = [
        Line([Cell(str(number)), Cell(one.schema_type), Cell(one.schema)])
        for number, one in sorted(kept.items())
    ]
    return _table(columns, lines, len(lines), none="") if kept else ""


def groups_html(rows: Sequence[GroupRow]) -> str:
    """All groups; a click shows one."""
    columns = [
        Column("group", _NAME),
        Column("type"),
        Column("state"),
        Column("members", _NUMBER),
        Column("topics"),
        *(Column(name, _NUMBER) for name in ("partitions", "records behind", "oldest unread")),
    ]
    lines = []
    for row in rows[:MOST_ROWS]:
        topics = sorted({one.topic_partition.topic for one in row.lags})
        ages = [one.lag_ms for one in row.lags if one.lag_ms is not None]
        lines.append(
            _line(
                Link(GROUPS, row.group_id),
                row.group_id,
                row.group_type,
                row.state,
                count(row.members),
                ", ".join(topics[:4]) + (", …" if len(topics) > 4 else ""),
                count(len(row.lags)),
                count(sum(one.lag_records for one in row.lags)),
                duration(max(ages)) if ages else "–",
            )
        )
    return _table(columns, lines, len(rows), none="no groups")


def lags_html(lags: Sequence[GroupLag], *, by_group: bool) -> str:
    """Where groups are in partitions; a click shows the first record that is not read.

    Args:
        by_group: whether the group is named, not the topic.
    """
    columns = [
        Column("group" if by_group else "topic", _NAME),
        *(Column(name, _NUMBER) for name in ("partition", "offset", "log end")),
        *(Column(name, _NUMBER) for name in ("records behind", "oldest unread")),
    ]
    lines = []
    for one in lags[:MOST_ROWS]:
        topic, partition = one.topic_partition.topic, one.topic_partition.partition
        lines.append(
            _line(
                Link(RECORDS, topic, partition, at=str(one.offset)),
                one.group_id if by_group else topic,
                str(partition),
                count(one.offset),
                count(one.log_end),
                count(one.lag_records),
                "–" if one.lag_ms is None else duration(one.lag_ms),
            )
        )
    return _table(columns, lines, len(lags), none="no group reads it")


def _line(link: Link, *texts: str) -> Line:
    return Line([Cell(text) for text in texts], f' data-link="{escape(link.path)}" tabindex="0"')


def _table(columns: Sequence[Column], lines: Sequence[Line], rows: int, *, none: str) -> str:
    keys = escape("if (event.key === 'Enter') { event.target.click(); }")
    attributes = f' class="ll-table" onclick="{CLICK}" onkeydown="{keys}"'
    table = html_table(columns, lines, attributes, none=none)
    rest = rest_text(rows - len(lines))
    return f'<div class="ll-scroll">{table}</div><div class="ll-note">{rest}</div>'

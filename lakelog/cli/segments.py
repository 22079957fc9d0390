"""``lakelog segments``: list segments, look into them, and verify that they hold what they say."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted, printable
from .check import findings_shown, wrapped
from .connect import open_archived
from .options import Offer
from .output import Failed, Message, Page, Table, row, utc_text
from .progress import ConsoleProgress, engines_told

if TYPE_CHECKING:
    from ..cold.scan import FileScan
    from ..operate.check.finding import Finding
    from ..operate.check.verification import Verified
    from ..operate.segments import EntryRow
    from ..read.topic_log import TopicLog
    from ..values.record import Record

_LIST_EPILOG = """\
state   open: the newest; closed; of a compacted topic also dirty (not cleaned yet) and cleaned;
        below log start: deleted, its files go with the next cleanup
size    hot: stored bytes of the whole segment, also where it is partly trimmed; cold: of the files

--verify reads everything of what is named, both tiers, and names what is not as it should be:
offsets out of order, missing or double, statistics and registers that lie, entries and files that
are not what was written, records that the tiers hold differently. Exit code 1 if there is any.

examples:
  lakelog --dir ./log segments list orders
  lakelog --dir ./log segments list orders -p 0 --tier cold --output json
  lakelog --dir ./log segments list orders --verify
"""

_DUMP_EPILOG = """\
hot     a row an entry: offsets, stored bytes, format (arrow, fields, kafka or gap), compression,
        CRC-32C, and who wrote it. Producer id, epoch and sequence are not stored with an entry:
        they are known of the last five calls of each producer that Redis still remembers.
cold    a row a Parquet file, then a row a row group, with what its rows are (not what statistics
        say they are: --verify compares the two)

--limit bounds the entries, the row groups and the records, each by itself. As JSON: one object a
line; its "kind" says what it is.

examples:
  lakelog --dir ./log segments dump orders -p 0
  lakelog --dir ./log segments dump orders -p 0 --tier cold --segment 5000
  lakelog --dir ./log segments dump orders -p 0 --from 250 --limit 5 --records
  lakelog --dir ./log segments dump orders -p 0 --segment 5000 --verify
"""

_PAGE_ROWS = 1000  # of a table that is printed at once
_PREVIEW = 40  # characters of a key or value in text

#: Columns of text; JSON has more of each.
_SEGMENT = "partition tier base_offset end_offset records size_bytes files"
_ENTRY = "segment base_offset last_offset records size_bytes format crc min_timestamp_ms"
_ENTRY += " max_timestamp_ms producer_id epoch base_sequence"
_ROW_GROUP = "row_group rows records uncompressed_bytes compressed_bytes compression first_offset"
_ROW_GROUP += " last_offset min_timestamp_ms max_timestamp_ms"


def add_segments(offer: Offer) -> None:
    verb = offer.verbs("List segments of either tier, look into them, and verify them.")
    listed = verb("list", _list, "one row a segment and tier", _LIST_EPILOG)
    listed.add_argument("topic")
    listed.add_argument("-p", "--partition", type=int, help="only this one (default: all)")
    dumped = verb("dump", _dump, "entries, files and row groups of a partition", _DUMP_EPILOG)
    dumped.add_argument("topic")
    dumped.add_argument("-p", "--partition", type=int, required=True)
    where = dumped.add_mutually_exclusive_group()
    where.add_argument("--segment", type=int, metavar="BASE", help="the one of that base offset")
    where.add_argument("--from", dest="start", type=int, metavar="OFFSET", help="from there on")
    dumped.add_argument("--limit", type=int, metavar="N", help="at most so many of each")
    dumped.add_argument("--records", action="store_true", help="print records too")
    for added in (listed, dumped):
        added.add_argument("--tier", choices=["hot", "cold", "both"], default="both")
        added.add_argument("--verify", action="store_true", help="read everything and check it")


def _tiers(unified: TopicLog, arguments: argparse.Namespace) -> tuple[str, ...]:
    from ..operate.segments import inspection_of, tiers_of

    if arguments.tier == "hot":
        inspection_of(unified)  # refuses if there is none
    return tiers_of(unified) if arguments.tier == "both" else (arguments.tier,)


def _verified(
    unified: TopicLog,
    arguments: argparse.Namespace,
    partitions: list[int] | None,
    start: int = 0,
    end: int | None = None,
) -> list[Verified]:
    from ..operate.check.verification import verify

    with ConsoleProgress().step(f"verify {unified.topic.name}") as step:
        return list(
            verify(
                unified,
                partitions,
                tiers=_tiers(unified, arguments),
                start_offset=start,
                end_offset=end,
                progress=step.advance,
            )
        )


# -- list --------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> Table | Page:
    with open_archived(arguments) as log:
        unified = log.log(arguments.topic)
        partitions = None if arguments.partition is None else [arguments.partition]
        verified = _verified(unified, arguments, partitions) if arguments.verify else []
        findings = [finding for one in verified for finding in one.findings]
        entries = {
            (one.topic_partition.partition, "hot", at): many
            for one in verified
            for at, many in one.hot_entries.items()
        }
        rows = _segments(unified, partitions, arguments, findings, entries)
    columns = [*_SEGMENT.split(), *(["entries"] if arguments.verify else [])]
    columns += ["first_timestamp_ms", "max_timestamp_ms", "state"]
    table = Table(rows, columns, empty="no segments yet")
    if not arguments.verify:
        return table
    engines = tuple(dict.fromkeys(engine for one in verified for engine in one.engines))
    page = Page(
        {
            "segments": table,
            "findings": findings_shown(findings),
            "engines": engines_told({arguments.topic: engines}),
        }
    )
    if findings:
        raise Failed(page)
    return page


def _segments(
    unified: TopicLog,
    partitions: list[int] | None,
    arguments: argparse.Namespace,
    findings: list[Finding],
    entries: dict[tuple[int, str, int], int],
) -> list[dict[str, Any]]:
    """The rows of all tiers that can be read: why another cannot be is among the findings."""
    from ..errors import LakelogError
    from ..operate.segments import segments

    found = []
    for tier in _tiers(unified, arguments):
        try:
            found += segments(unified, partitions, tiers=(tier,))
        except LakelogError:
            if not findings:
                raise
    found.sort(key=lambda one: (one.topic_partition, one.tier, one.base_offset))
    return [
        {
            **row(one, "topic_partition tier base_offset end_offset records size_bytes files"),
            "entries": entries.get((one.topic_partition.partition, one.tier, one.base_offset)),
            **row(one, "first_timestamp_ms max_timestamp_ms state"),
        }
        for one in found
    ]


# -- dump --------------------------------------------------------------------------------------


def _dump(arguments: argparse.Namespace) -> Iterator[Any]:
    from ..errors import InvalidArgumentError, LakelogError
    from ..operate.segments import segment_range
    from ..values.offsets import check_offset

    if arguments.limit is not None and arguments.limit < 0:
        raise InvalidArgumentError(f"--limit {arguments.limit} is negative")
    with open_archived(arguments) as log:
        unified = log.log(arguments.topic)
        topic_partition = unified.topic.partition(arguments.partition)
        start, end = check_offset(arguments.start or 0), None
        if arguments.segment is not None:
            start, end = segment_range(unified, arguments.partition, arguments.segment)
        tiers = _tiers(unified, arguments)
        found = False
        for tier, dump in (("cold", _dump_cold), ("hot", _dump_hot)):
            try:
                for part in dump(unified, arguments, start, end) if tier in tiers else ():
                    found = True
                    yield part
            except LakelogError:
                if not arguments.verify:  # else it is among the findings
                    raise
        if not found and arguments.limit != 0:
            yield Message(f"{topic_partition} has no entries and no files there", [])
        if arguments.verify:
            verified = _verified(unified, arguments, [arguments.partition], start, end)
            shown = findings_shown([finding for one in verified for finding in one.findings])
            told = Message(shown.text, [{"kind": "finding", **one} for one in shown.values])
            if told.values:
                raise Failed(iter([told]))
            yield told


def _dump_hot(
    unified: TopicLog, arguments: argparse.Namespace, start: int, end: int | None
) -> Iterator[Message]:
    from ..operate.segments import dump_hot
    from ..values.record import to_records

    topic_partition = unified.topic.partition(arguments.partition)
    left = left_records = arguments.limit
    for page in dump_hot(unified, arguments.partition, start, end):
        for at in range(0, len(page.rows), _PAGE_ROWS):
            rows = page.rows[at : at + _PAGE_ROWS][:left]
            left = None if left is None else left - len(rows)
            if rows:
                title = f"hot entries of {topic_partition}"
                table = Table(map(_entry_line, rows), _ENTRY.split(), title=title)
                yield from _shown(table, map(_entry, rows))
            if arguments.records and rows:
                known = [one.entry for one in rows if one.entry.base_offset is not None]
                low = max(start, min((e.base_offset or 0 for e in known), default=0))
                high = max((e.end_offset for e in known), default=0)
                inside = _between(page.records, low, high)[:left_records]
                left_records = None if left_records is None else left_records - inside.num_rows
                yield from _records(to_records(topic_partition, inside), "hot")
            if left == 0:
                return


def _shown(table: Table, rows: Iterable[dict[str, Any]]) -> Iterator[Message]:
    """A part of a dump, and an empty line after it."""
    yield Message(table, rows)
    yield Message("", [])


def _between(records: Any, low: int, high: int) -> Any:
    from bisect import bisect_left

    offsets = records.column("offset").to_numpy(zero_copy_only=False)
    first, last = bisect_left(offsets, low), bisect_left(offsets, high)
    return records.slice(first, last - first)


def _dump_cold(
    unified: TopicLog, arguments: argparse.Namespace, start: int, end: int | None
) -> Iterator[Message]:
    from ..operate.segments import cold_records, dump_cold

    left = left_records = arguments.limit
    for scan in dump_cold(unified, arguments.partition, start, end):
        groups = [
            {
                "kind": "row group",
                "path": scan.file.path,
                **row(
                    group,
                    "row_group=index rows records=found_rows uncompressed_bytes=size_bytes "
                    "compressed_bytes compression first_offset=found.first_offset "
                    "last_offset=found.last_offset min_timestamp_ms=found.min_timestamp_ms "
                    "max_timestamp_ms=found.max_timestamp_ms",
                ),
            }
            for group in scan.row_groups[:left]
        ]
        left = None if left is None else left - len(groups)
        yield Message(_file_text(scan), [_file(scan)])
        if groups:
            yield Message(Table(groups, _ROW_GROUP.split()), groups)
        yield Message("", [])
        if arguments.records and scan.flaw is None:
            records = cold_records(unified, scan, start, end)
            if left_records is not None:
                shown = list(islice(records, left_records))
                left_records -= len(shown)
                records = iter(shown)
            yield from _records(records, "cold")
        if left == 0:
            return


def _entry(one: EntryRow) -> dict[str, Any]:
    entry = one.entry
    return {
        "kind": "entry",
        "segment": one.segment,
        **row(entry, "id base_offset"),
        "last_offset": None if entry.base_offset is None else entry.end_offset - 1,
        **row(entry, "records size_bytes format compression crc32c=crc crc_holds flaw"),
        **row(entry, "min_timestamp_ms max_timestamp_ms"),
        **row(one, "producer_id=call.producer_id epoch=call.epoch base_sequence"),
    }


def _entry_line(one: EntryRow) -> dict[str, Any]:
    entry, line = one.entry, _entry(one)
    crc = entry.crc and entry.crc[:8]
    if entry.crc_holds is False:
        crc = f"{crc} BAD"
    elif entry.flaw is not None:
        crc = "BAD"
    return {
        **line,
        "last_offset": entry.id if entry.base_offset is None else line["last_offset"],
        "format": " ".join(filter(None, (entry.format, entry.compression))),
        "crc": crc,
        "producer_id": None if one.call is None else str(one.call.producer_id),
    }


def _file(scan: FileScan) -> dict[str, Any]:
    return {
        "kind": "file",
        **row(scan.file, "path segment start_offset end_offset size_bytes"),
        "records": scan.records,
        "row_groups": len(scan.row_groups),
        **row(scan.found, "first_offset last_offset min_timestamp_ms max_timestamp_ms"),
        "modified_ms": scan.file.modified_ms,
        "sorted": scan.ascending if scan.flaw is None else None,
        **row(
            scan,
            "tombstones_without_horizon=said_tombstones.without_horizon "
            "min_delete_horizon_ms=said_tombstones.min_horizon_ms flaw=flaw.message",
        ),
    }


def _file_text(scan: FileScan) -> str:
    from ..operate.check.finding import predicate

    file, found, tombstones = scan.file, scan.found, scan.said_tombstones
    lines = [file.path]
    if scan.flaw is not None:
        why = predicate(scan.flaw.message, getattr(scan.flaw, "path", ""))
        return "\n".join([*lines, wrapped(f"UNREADABLE: {why}")])
    lines.append(
        f"  {counted(scan.records, 'record')} in {file.size_bytes:,} bytes, "
        f"{'sorted' if scan.ascending else 'NOT SORTED'}, covers offsets "
        f"{file.start_offset}..{file.end_offset - 1}"
    )
    if found.first_offset is not None:
        lines.append(
            f"  offsets {found.first_offset}..{found.last_offset}, timestamps "
            f"{_time(found.min_timestamp_ms)} to {_time(found.max_timestamp_ms)}"
        )
    if tombstones is not None and tombstones.min_horizon_ms is not None:
        lines.append(f"  the first delete horizon is {_time(tombstones.min_horizon_ms)}")
    if tombstones is not None and tombstones.without_horizon:
        lines.append(f"  {tombstones.without_horizon:,} tombstones without a delete horizon")
    return "\n".join(lines)


def _records(records: Iterable[Record], tier: str) -> Iterator[Message]:
    from ..values.record_lines import as_object

    rest = iter(records)
    while page := list(islice(rest, _PAGE_ROWS)):
        table = Table(map(_record_line, page), title=f"records of the {tier} tier")
        objects = ({"kind": "record", "tier": tier, **as_object(record)} for record in page)
        yield from _shown(table, objects)


def _record_line(record: Record) -> dict[str, Any]:
    return {
        **row(record, "offset timestamp_ms"),
        "key_bytes": None if record.key is None else len(record.key),
        "value_bytes": None if record.value is None else len(record.value),
        "headers": len(record.headers),
        "key": _preview(record.key),
        "value": _preview(record.value),
    }


def _time(time_ms: int | None) -> str | None:
    return utc_text(time_ms, "milliseconds")


def _preview(data: bytes | None) -> str | None:
    if data is None:
        return None
    text = printable(data[: 4 * _PREVIEW].decode(errors="backslashreplace"))
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1] + "…"

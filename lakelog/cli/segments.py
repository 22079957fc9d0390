"""``lakelog segments``: list segments, look into them, and verify that they hold what they say."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from .connect import open_archived
from .engines import engines_table, say_engines
from .findings import findings_shown, wrapped
from .output import ConsoleProgress, Failed, Message, Page, Table, utc_text

if TYPE_CHECKING:
    from ..cold.scan import FileScan
    from ..engines.engine import Choice
    from ..operate.check.finding import Finding
    from ..operate.segments import EntryRow, SegmentRow
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
hot     a row an entry: offsets, stored bytes, format (arrow, fields or gap), compression of its
        buffers, CRC-32C, and who wrote it. Producer id, epoch and sequence are not stored with an
        entry: they are known of the last five calls of each producer that Redis still remembers.
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


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    noun = commands.add_parser(
        "segments",
        description="List segments of either tier, look into them, and verify them.",
    ).add_subparsers(dest="verb", metavar="VERB", required=True)

    listed = noun.add_parser(
        "list",
        parents=[common],
        help="one row a segment and tier",
        description="List the segments of a topic in either tier.",
        epilog=_LIST_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    listed.add_argument("topic")
    listed.add_argument("-p", "--partition", type=int, help="only this one (default: all)")
    _add_tier(listed)
    listed.add_argument("--verify", action="store_true", help="read everything and check it")
    listed.set_defaults(run=_list)

    dumped = noun.add_parser(
        "dump",
        parents=[common],
        help="entries, files and row groups of a partition",
        description="Look into the entries and files of a partition.",
        epilog=_DUMP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    dumped.add_argument("topic")
    dumped.add_argument("-p", "--partition", type=int, required=True)
    _add_tier(dumped)
    where = dumped.add_mutually_exclusive_group()
    where.add_argument("--segment", type=int, metavar="BASE", help="the one of that base offset")
    where.add_argument("--from", dest="start", type=int, metavar="OFFSET", help="from there on")
    dumped.add_argument("--limit", type=int, metavar="N", help="at most so many of each")
    dumped.add_argument("--records", action="store_true", help="print records too")
    dumped.add_argument("--verify", action="store_true", help="read everything and check it")
    dumped.set_defaults(run=_dump)


def _add_tier(added: argparse.ArgumentParser) -> None:
    added.add_argument("--tier", choices=["hot", "cold", "both"], default="both")


def _tiers(unified: TopicLog, arguments: argparse.Namespace) -> tuple[str, ...]:
    from ..operate.segments import inspection_of, tiers_of

    if arguments.tier == "hot":
        inspection_of(unified)  # refuses if there is none
    return tiers_of(unified) if arguments.tier == "both" else (arguments.tier,)


# -- list --------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> Table | Page:
    with open_archived(arguments) as log:
        unified = log.log(arguments.topic)
        partitions = None if arguments.partition is None else [arguments.partition]
        found = _Found()
        if arguments.verify:
            found = _verify(unified, arguments, partitions)
        rows = _rows(unified, partitions, _tiers(unified, arguments), found.findings)
    as_json = arguments.output == "json"
    columns = ["partition", "tier", "base_offset", "end_offset", "records", "size_bytes", "files"]
    if arguments.verify:
        columns.append("entries")
    table = Table(
        [_segment(row, found.entries, as_json) for row in rows],
        [*columns, "first_timestamp", "max_timestamp", "state"],
        empty="no segments yet",
    )
    if not arguments.verify:
        return table
    parts: dict[str, Any] = {"segments": table, "findings": findings_shown(found.findings, as_json)}
    engines = {arguments.topic: tuple(found.engines)}
    if as_json:
        parts["engines"] = engines_table(engines)
    else:
        say_engines(engines)
    if found.findings:
        raise Failed(Page(parts))
    return Page(parts)


def _rows(
    unified: TopicLog,
    partitions: list[int] | None,
    tiers: tuple[str, ...],
    findings: list[Finding],
) -> list[SegmentRow]:
    from ..errors import LakelogError
    from ..operate.segments import segments

    rows: list[SegmentRow] = []
    for tier in tiers:
        try:
            rows += segments(unified, partitions, tiers=(tier,))
        except LakelogError:
            if not findings:  # else it is among them
                raise
    return sorted(rows, key=lambda row: (row.topic_partition, row.tier, row.base_offset))


def _segment(row: SegmentRow, entries: dict[tuple[int, int], int], as_json: bool) -> dict[str, Any]:
    partition = row.topic_partition.partition
    counted = entries.get((partition, row.base_offset)) if row.tier == "hot" else None
    if as_json:
        return {
            "topic": row.topic_partition.topic,
            "partition": partition,
            "tier": row.tier,
            "base_offset": row.base_offset,
            "end_offset": row.end_offset,
            "records": row.records,
            "size_bytes": row.size_bytes,
            "files": row.files,
            "entries": counted,
            "first_timestamp_ms": row.first_timestamp_ms,
            "max_timestamp_ms": row.max_timestamp_ms,
            "state": row.state,
        }
    return {
        "partition": partition,
        "tier": row.tier,
        "base_offset": row.base_offset,
        "end_offset": row.end_offset,
        "records": row.records,
        "size_bytes": row.size_bytes,
        "files": row.files,
        "entries": counted,
        "first_timestamp": _time(row.first_timestamp_ms),
        "max_timestamp": _time(row.max_timestamp_ms),
        "state": row.state,
    }


# -- dump --------------------------------------------------------------------------------------


def _dump(arguments: argparse.Namespace) -> Iterator[Any]:
    from ..errors import InvalidArgumentError, LakelogError
    from ..operate.segments import segment_range
    from ..values.offsets import check_offset

    if arguments.limit is not None and arguments.limit < 0:
        raise InvalidArgumentError(f"--limit {arguments.limit} is negative")
    with open_archived(arguments) as log:
        unified = log.log(arguments.topic)
        unified.topic.partition(arguments.partition)
        start, end = check_offset(arguments.start or 0), None
        if arguments.segment is not None:
            start, end = segment_range(unified, arguments.partition, arguments.segment)
        as_json = arguments.output == "json"
        dumps = {"cold": _dump_cold, "hot": _dump_hot}
        found = False
        for tier in ("cold", "hot"):
            if tier not in _tiers(unified, arguments):
                continue
            try:
                for part in dumps[tier](unified, arguments, start, end, as_json):
                    found = True
                    yield part
            except LakelogError:
                if not arguments.verify:  # else it is among the findings
                    raise
        if not found and not as_json and arguments.limit != 0:
            where = unified.topic.partition(arguments.partition)
            yield Message(f"{where} has no entries and no files there")
        if arguments.verify:
            findings = _verify(unified, arguments, [arguments.partition], start, end).findings
            shown = findings_shown(findings, as_json)
            if findings and isinstance(shown, Table):
                raise Failed(iter([{"kind": "finding", **row} for row in shown.rows]))
            if findings:
                raise Failed(shown)
            if not as_json:
                yield shown


def _dump_hot(
    unified: TopicLog, arguments: argparse.Namespace, start: int, end: int | None, as_json: bool
) -> Iterator[Any]:
    from ..operate.segments import dump_hot
    from ..values.record import to_records

    topic_partition = unified.topic.partition(arguments.partition)
    left = left_records = arguments.limit
    for page in dump_hot(unified, arguments.partition, start, end):
        for at in range(0, len(page.rows), _PAGE_ROWS):
            rows = page.rows[at : at + _PAGE_ROWS][:left]
            left = None if left is None else left - len(rows)
            if as_json:
                yield from (_entry_object(row) for row in rows)
            elif rows:
                title = f"hot entries of {topic_partition}"
                yield Table([_entry_line(row) for row in rows], title=title)
                yield Message("")
            if arguments.records and rows:
                known = [row.entry for row in rows if row.entry.base_offset is not None]
                low = max(start, min((e.base_offset or 0 for e in known), default=0))
                high = max((e.end_offset for e in known), default=0)
                inside = _between(page.records, low, high)[:left_records]
                left_records = None if left_records is None else left_records - inside.num_rows
                yield from _records(iter(to_records(topic_partition, inside)), "hot", as_json)
            if left == 0:
                return


def _between(records: Any, low: int, high: int) -> Any:
    from bisect import bisect_left

    offsets = records.column("offset").to_numpy(zero_copy_only=False)
    first, last = bisect_left(offsets, low), bisect_left(offsets, high)
    return records.slice(first, last - first)


def _dump_cold(
    unified: TopicLog, arguments: argparse.Namespace, start: int, end: int | None, as_json: bool
) -> Iterator[Any]:
    from ..operate.segments import cold_records, dump_cold

    left = left_records = arguments.limit
    for scan in dump_cold(unified, arguments.partition, start, end):
        groups = [_row_group(scan, group, as_json) for group in scan.row_groups][:left]
        left = None if left is None else left - len(groups)
        if as_json:
            yield _file_object(scan)
            yield from groups
        else:
            yield Message(_file_text(scan))
            if groups:
                yield Table(groups)
            yield Message("")
        if arguments.records and scan.flaw is None:
            records = cold_records(unified, scan, start, end)
            shown = list(islice(records, left_records)) if left_records is not None else None
            if shown is not None and left_records is not None:
                left_records -= len(shown)
            yield from _records(records if shown is None else iter(shown), "cold", as_json)
        if left == 0:
            return


def _entry_object(row: EntryRow) -> dict[str, Any]:
    entry = row.entry
    return {
        "kind": "entry",
        "segment": row.segment,
        "id": entry.id,
        "base_offset": entry.base_offset,
        "last_offset": None if entry.base_offset is None else entry.end_offset - 1,
        "records": entry.records,
        "size_bytes": entry.size_bytes,
        "format": entry.format,
        "compression": entry.compression,
        "crc32c": entry.crc,
        "crc_holds": entry.crc_holds,
        "flaw": entry.flaw,
        "min_timestamp_ms": entry.min_timestamp_ms,
        "max_timestamp_ms": entry.max_timestamp_ms,
        "producer_id": None if row.call is None else row.call.producer_id,
        "epoch": None if row.call is None else row.call.epoch,
        "base_sequence": row.base_sequence,
    }


def _entry_line(row: EntryRow) -> dict[str, Any]:
    entry = row.entry
    crc = entry.crc and entry.crc[:8]
    if entry.crc_holds is False:
        crc = f"{crc} BAD"
    elif entry.flaw is not None:
        crc = "BAD"
    return {
        "segment": row.segment,
        "base_offset": entry.base_offset,
        "last_offset": entry.id if entry.base_offset is None else entry.end_offset - 1,
        "records": entry.records,
        "size_bytes": entry.size_bytes,
        "format": entry.format + (f" {entry.compression}" if entry.compression else ""),
        "crc": crc,
        "min_timestamp": _time(entry.min_timestamp_ms),
        "max_timestamp": _time(entry.max_timestamp_ms),
        "producer_id": None if row.call is None else str(row.call.producer_id),
        "epoch": None if row.call is None else row.call.epoch,
        "base_sequence": row.base_sequence,
    }


def _file_object(scan: FileScan) -> dict[str, Any]:
    file, found, tombstones = scan.file, scan.found, scan.said_tombstones
    return {
        "kind": "file",
        "path": file.path,
        "segment": file.segment,
        "start_offset": file.start_offset,
        "end_offset": file.end_offset,
        "size_bytes": file.size_bytes,
        "records": scan.records,
        "row_groups": len(scan.row_groups),
        "first_offset": found.first_offset,
        "last_offset": found.last_offset,
        "min_timestamp_ms": found.min_timestamp_ms,
        "max_timestamp_ms": found.max_timestamp_ms,
        "modified_ms": file.modified_ms,
        "sorted": scan.ascending if scan.flaw is None else None,
        "tombstones_without_horizon": None if tombstones is None else tombstones.without_horizon,
        "min_delete_horizon_ms": None if tombstones is None else tombstones.min_horizon_ms,
        "flaw": None if scan.flaw is None else scan.flaw.message,
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


def _row_group(scan: FileScan, group: Any, as_json: bool) -> dict[str, Any]:
    found = group.found
    if as_json:
        return {
            "kind": "row group",
            "path": scan.file.path,
            "row_group": group.index,
            "rows": group.rows,  # as stored
            "records": group.found_rows,  # that are not deleted
            "uncompressed_bytes": group.size_bytes,
            "compressed_bytes": group.compressed_bytes,
            "compression": group.compression,
            "first_offset": found.first_offset,
            "last_offset": found.last_offset,
            "min_timestamp_ms": found.min_timestamp_ms,
            "max_timestamp_ms": found.max_timestamp_ms,
        }
    return {
        "row_group": group.index,
        "rows": group.rows,
        "records": group.found_rows,
        "uncompressed_bytes": group.size_bytes,
        "compressed_bytes": group.compressed_bytes,
        "compression": group.compression,
        "first_offset": found.first_offset,
        "last_offset": found.last_offset,
        "min_timestamp": _time(found.min_timestamp_ms),
        "max_timestamp": _time(found.max_timestamp_ms),
    }


def _records(records: Iterator[Record], tier: str, as_json: bool) -> Iterator[Any]:
    from ..values.record_lines import as_object

    if as_json:
        yield from ({"kind": "record", "tier": tier, **as_object(r)} for r in records)
        return
    while rows := [_record_line(record) for record in islice(records, _PAGE_ROWS)]:
        yield Table(rows, title=f"records of the {tier} tier")
        yield Message("")


def _record_line(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": _time(record.timestamp_ms),
        "key_bytes": None if record.key is None else len(record.key),
        "value_bytes": None if record.value is None else len(record.value),
        "headers": len(record.headers),
        "key": _preview(record.key),
        "value": _preview(record.value),
    }


# -- verify ------------------------------------------------------------------------------------


@dataclass
class _Found:
    """What a verification found."""

    findings: list[Finding] = field(default_factory=list)
    entries: dict[tuple[int, int], int] = field(default_factory=dict)  # by partition and segment
    engines: dict[Choice, None] = field(default_factory=dict)  # in order, each once


def _verify(
    unified: TopicLog,
    arguments: argparse.Namespace,
    partitions: list[int] | None,
    start: int = 0,
    end: int | None = None,
) -> _Found:
    from ..operate.check.verification import verify

    found = _Found()
    with ConsoleProgress().step(f"verify {unified.topic.name}") as step:
        for verified in verify(
            unified,
            partitions,
            tiers=_tiers(unified, arguments),
            start_offset=start,
            end_offset=end,
            progress=step.advance,
        ):
            found.findings += verified.findings
            found.engines.update(dict.fromkeys(verified.engines))
            partition = verified.topic_partition.partition
            found.entries |= {(partition, at): n for at, n in verified.hot_entries.items()}
    return found


def _time(time_ms: int | None) -> str | None:
    return utc_text(time_ms, "milliseconds")


def _preview(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        text = data[: 4 * _PREVIEW].decode()
    except UnicodeDecodeError as error:
        # a character cut in two at the end is no reason to show hexadecimal
        if len(data) > 4 * _PREVIEW and error.start > 3 * _PREVIEW:
            text = data[: error.start].decode()
        else:
            text = f"0x{data[:_PREVIEW].hex()}"
    text = "".join(c if c.isprintable() else "·" for c in text)
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1] + "…"

"""One opened record as HTML; very long parts are cut until the rest is asked for."""

from __future__ import annotations

from datetime import tzinfo
from html import escape

from ...base.text_table import counted
from ...values.record import Record, TimestampType
from ..words import size
from .decode import AUTO, EMPTY, HEX, NULL, decode
from .rows import clock_time, size_bytes

#: Shown at first, and on demand. With more, a browser can no longer handle the page.
FIRST_BYTES, FIRST_HEADERS = 4 * 1024, 50
ALL_BYTES, ALL_HEADERS = 2 * 1024 * 1024, 20_000

_BLOCK = 100  # lines

#: A hexadecimal dump takes some five letters a byte.
_HEX_SHARE = 4


def is_long(record: Record) -> bool:
    """Whether it has more than is shown at first."""
    longest = max(len(record.value or b""), len(record.key or b""))
    headers = sum(len(value or b"") for _, value in record.headers)
    return longest > FIRST_BYTES or len(record.headers) > FIRST_HEADERS or headers > FIRST_BYTES


def record_html(
    record: Record, tier: str, zone: tzinfo, kind: str = AUTO, full: bool = False
) -> str:
    """The record's fields, its value over several lines, its headers.

    Args:
        kind: how to show the value.
        full: all of it, up to `ALL_BYTES` and `ALL_HEADERS`.
    """
    limit = ALL_BYTES if full else FIRST_BYTES
    clock = (
        "append time" if record.timestamp_type is TimestampType.LOG_APPEND_TIME else "create time"
    )
    fields = [
        ("offset", f"{record.offset}"),
        ("time", f"{escape(clock_time(record.timestamp_ms, zone))} <small>{clock}</small>"),
        ("tier", f'<span class="ll-tier ll-{escape(tier)}">{escape(tier)}</span>'),
        ("size", f"{size(size_bytes(record))}"),
        ("key", _bytes_html(record.key, AUTO, limit)),
        ("value", _bytes_html(record.value, kind, limit)),
        ("headers", _headers_html(record, full)),
    ]
    return (
        '<table class="ll-fields">'
        + "".join(f"<tr><th>{name}</th><td>{html}</td></tr>" for name, html in fields)
        + "</table>"
    )


def _bytes_html(value: bytes | None, kind: str, limit: int) -> str:
    decoded = decode(value, kind, limit=limit, pretty=True)
    if decoded.kind == HEX:
        decoded = decode(value, HEX, limit=limit // _HEX_SHARE, pretty=True)
    if decoded.kind in {NULL, EMPTY}:
        return f'<i class="ll-nothing">{decoded.kind}</i>'
    size = f'<span class="ll-kind">{decoded.kind}, {decoded.size_bytes:,} bytes</span>'
    if decoded.cut:
        size += f' <span class="ll-cut">the first {decoded.shown_bytes:,} are shown</span>'
    return f"{size}<pre>{_blocks(decoded.text)}</pre>"


def _blocks(text: str) -> str:
    """A text, in blocks of lines if it is long: a browser lays out only those that are in view."""
    if len(text) <= FIRST_BYTES:
        return escape(text)
    lines = text.splitlines(keepends=True)
    blocks = ("".join(lines[at : at + _BLOCK]) for at in range(0, len(lines), _BLOCK))
    return "".join(f'<div class="ll-block">{escape(block)}</div>' for block in blocks)


def _headers_html(record: Record, full: bool) -> str:
    if not record.headers:
        return '<i class="ll-nothing">none</i>'
    shown = record.headers[: ALL_HEADERS if full else FIRST_HEADERS]
    left = ALL_BYTES if full else FIRST_BYTES  # of all values together
    lines = []
    for name, value in shown:
        decoded = decode(value, limit=max(16, left))
        left -= decoded.shown_bytes
        text = escape(decoded.text)
        if decoded.kind in {NULL, EMPTY}:
            text = f'<i class="ll-nothing">{decoded.kind}</i>'
        cut = f'… <span class="ll-cut">{size(decoded.size_bytes)}</span>'
        written = escape(decode(name.encode()).text)
        lines.append(f"<tr><th>{written}</th><td>{text}{cut if decoded.cut else ''}</td></tr>")
    more = len(record.headers) - len(shown)
    count = f'<span class="ll-kind">{counted(len(record.headers), "header")}</span>'
    if more:
        count += f' <span class="ll-cut">the first {len(shown):,} are shown</span>'
    table = f'<table class="ll-fields">{"".join(lines)}</table>'
    return f'{count}<div class="ll-headers-box">{table}</div>'

"""The rows of a table by keys: arrows choose one, Enter opens it as a click does."""

from __future__ import annotations

from html import escape

#: The script holds nothing from a record.
_SCRIPT = (
    "var rows = [...this.querySelectorAll('tr[data-offset]')], "
    "at = rows.indexOf(document.activeElement), "
    "to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1}[event.key]; "
    "if (rows.length && to !== undefined) { "
    "to = rows[Math.max(0, Math.min(rows.length - 1, to))]; to.tabIndex = -1; to.focus(); "
    "event.preventDefault(); } "
    "else if (at >= 0 && (event.key === 'Enter' || event.key === ' ')) { "
    "rows[at].click(); event.preventDefault(); }"
)

#: Attributes of the box around a table. JupyterLab would take the keys to walk through the cells.
ROW_KEYS = (
    'tabindex="0" data-lm-suppress-shortcuts="true" '
    'aria-label="records: the arrow keys choose one, Enter opens it" '
    f'onkeydown="{escape(_SCRIPT)}"'
)

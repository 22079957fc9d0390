"""Shows what a check or a verification found, as text or as rows."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .output import Message, Table

if TYPE_CHECKING:
    from ..operate.check.finding import Finding


def findings_shown(
    findings: Sequence[Finding],
    as_json: bool,
    *,
    sound: str = "verified: everything holds what it says",
) -> Table | Message:
    """The findings: rows as JSON, else a paragraph for each place.

    Args:
        sound: what to say if there are none.
    """
    if as_json:
        return Table([finding_row(finding) for finding in findings])
    if not findings:
        return Message(sound)
    parts = [f"{len(findings):,} finding{'s' if len(findings) > 1 else ''}"]
    for place, group in groupby(findings, lambda f: (f.place, f.tier, f.where)):
        name, tier, where = place
        parts.append(f"\n{name}, {'both tiers' if tier == 'both' else tier}: {where}")
        parts += [wrapped(f"{finding.kind.value}: {finding.what}") for finding in group]
    return Message("\n".join(parts))


def finding_row(finding: Finding) -> dict[str, Any]:
    """All that is known of a finding; ranges of offsets are half-open."""
    return {
        "fault": finding.kind.value,
        "topic": finding.topic,
        "partition": finding.partition,
        "tier": finding.tier,
        "where": finding.where,
        "what": finding.what,
        "offsets": [[low, end] for low, end in finding.offsets],
        "repairable": finding.repairable,
    }


def wrapped(text: str) -> str:
    """An indented paragraph, as wide as the terminal."""
    width = max(60, shutil.get_terminal_size((100, 0)).columns - 1)
    return textwrap.fill(
        text,
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )

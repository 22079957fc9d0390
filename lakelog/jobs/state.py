"""What a notebook says of a log's state, besides where its partitions stand."""

from __future__ import annotations

from collections.abc import Sequence

from ..hot.server_info import ServerInfo
from ..lakelog import Lakelog
from .table_rows import TableRows


class Failures(dict[str, str]):
    """Why the state of topics cannot be told, by topic; shows itself as a table."""

    def _told(self) -> TableRows:
        rows = ({"topic": topic, "why": why} for topic, why in self.items())
        return TableRows(rows, "The state of every topic can be told.")

    def __repr__(self) -> str:
        return repr(self._told())

    def _repr_html_(self) -> str:
        return self._told()._repr_html_()


def failures(lakelog: Lakelog, topics: Sequence[str] | None = None) -> Failures:
    """Topics whose state cannot be told, and why: a table is damaged, or contradicts itself.

    Args:
        topics: names; None for all.
    """
    found = lakelog.status(topics).failures
    return Failures({failure.topic: str(failure.error) for failure in found})


def servers(lakelog: Lakelog, topics: Sequence[str] | None = None) -> TableRows:
    """The servers of the hot tier: what they are, their memory, how they write to disk."""
    found = lakelog.status(topics).servers
    return TableRows(map(_server, found), "No server of Redis holds these topics.")


def warnings(lakelog: Lakelog, topics: Sequence[str] | None = None) -> TableRows:
    """What stays wrong until somebody does something."""
    found = lakelog.status(topics).warnings
    rows = ({"warning": warning.text} for warning in found)
    return TableRows(rows, "Nothing is wrong that stays so.")


def _server(server: ServerInfo) -> dict[str, object]:
    used = f"{server.used_memory_bytes / 2**20:,.1f} MiB"
    limit = server.max_memory_bytes
    return {
        "server": server.name,
        "program": f"{server.program} {server.version}",
        "role": server.role,
        "memory": f"{used} of {limit / 2**20:,.0f} MiB" if limit else f"{used}, no limit",
        "when full": server.eviction_policy,
        "append-only file": (server.appendfsync or "yes") if server.append_only_file else "no",
        "snapshots": server.snapshots or ("–" if server.snapshots is None else "no"),
    }

"""``lakelog status``: where every partition stands and how Redis is doing."""

from __future__ import annotations

import argparse
from typing import Any

from .connect import open_log
from .output import Page, Table

_EPILOG = """\
unarchived: records that Redis alone holds. lag: how long the oldest of them has waited. lost:
offsets whose records went with a Redis that lost its tail; they are never used again.
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "status",
        parents=[common],
        help="ranges, archive lag, losses and Redis's headroom",
        description="Show where every partition stands and how Redis is doing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Page:
    with open_log(arguments) as log:
        seen = log.status(arguments.topics or None)
    partitions = [
        {
            "topic": part.topic_partition.topic,
            "partition": part.topic_partition.partition,
            "state": part.state,
            "log_start": part.offsets.log_start,
            "cold_end": part.offsets.archived_end if part.tiered else None,
            "hot_start": part.offsets.local_log_start,
            "log_end": part.offsets.log_end,
            "unarchived": part.offsets.unarchived if part.tiered else None,
            "lag_s": None if part.archive_lag_ms is None else part.archive_lag_ms / 1000,
            "hot_MiB": part.hot_size_bytes / 2**20,
            "lost": ", ".join(f"{gap.start}..{gap.end - 1}" for gap in part.lost) or None,
        }
        for part in seen.partitions
    ]
    servers = [
        {
            "redis": server.name,
            "version": f"{server.program} {server.version}",
            "used_MiB": server.used_memory_bytes / 2**20,
            "max_MiB": server.max_memory_bytes / 2**20 if server.max_memory_bytes else None,
            "eviction": server.eviction_policy,
            "append_only_file": server.append_only_file,
            "appendfsync": server.appendfsync,
        }
        for server in seen.servers
    ]
    return Page({"partitions": Table(partitions, empty="no topics yet"), "servers": Table(servers)})

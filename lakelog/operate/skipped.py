"""Offsets that an unclean stop of Redis left unused, and which records may be lost with it.

A gap spans every offset that may have been given out before the stop, so that none names two
records. Most of these, often millions, were never given out. What may be lost is bounded by the
time of the last kept append and by how Redis writes to disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from msgspec import Struct

from ..hot.server_info import ServerInfo
from ..values.offsets import HotSegments, LogOffsets
from ..values.topic_partition import TopicPartition


class Skipped(Struct, frozen=True, gc=False):
    """Offsets [start, end) of one partition that no record has or ever will have."""

    start_offset: int
    end_offset: int  # exclusive
    last_append_ms: int | None = None  # the last one kept, by Redis's clock; None: not known now
    recovered_ms: int | None = None  # when the log went on above, likewise
    was_lost: bool = False  # Redis had lost the whole partition, not only its tail

    def sentence(self, topic_partition: TopicPartition, at_most: str) -> str:
        """What happened, and what may be lost.

        Args:
            at_most: see `may_be_lost`.
        """
        if self.was_lost:
            return (
                f"{topic_partition}: offsets {self.start_offset:,}..{self.end_offset - 1:,} were "
                f"skipped after Redis had lost the partition. Records that are lost: {UNARCHIVED}"
            )
        since = self.last_append_ms
        after = "" if since is None else f", whose last kept append was at {_utc(since)}"
        return (
            f"{topic_partition}: offsets {self.start_offset:,}..{self.end_offset - 1:,} were "
            f"skipped after an unclean stop of Redis{after}. Records that may be lost: {at_most}"
        )


#: What a total loss of Redis takes.
UNARCHIVED = "all that were not archived then"


def skipped(log: LogOffsets, hot: HotSegments) -> Iterator[Skipped]:
    """A partition's gaps, with the times that the segments beside them in Redis tell."""
    for gap in log.gaps:
        whole = next((one for one in hot.gaps if one.start <= gap.start < one.end), gap)
        before = [
            s.modified_ms for s in hot.segments if s.base_offset < s.end_offset <= whole.start
        ]
        after = [s.created_ms for s in hot.segments if s.base_offset == whole.end]
        yield Skipped(
            gap.start,
            gap.end,
            before[-1] if before else None,
            after[0] if after else None,
            whole.start == hot.lost_from,
        )


def may_be_lost(servers: Iterable[ServerInfo]) -> str:
    """The most that an unclean stop of such servers loses.

    Judged by their present settings, which may have been changed since the stop.
    """
    servers = list(servers)
    how = {server.appendfsync if server.append_only_file else "snapshot" for server in servers}
    if how == {"always"}:
        text = "none, as each append is on disk before it is answered (appendfsync always)"
    elif how <= {"always", "everysec"}:
        # Redis holds writes back for up to two seconds while a sync of its file is under way.
        text = (
            "at most those appended in the last second before the machine stopped, or two seconds "
            "if its disk was slow to sync (appendfsync everysec); none if Redis's process alone "
            "died and its disk kept up"
        )
    elif "snapshot" in how:
        text = "at most those appended since the last snapshot, as there is no append-only file"
    else:
        text = (
            "at most those that the operating system had not written yet when the machine stopped; "
            "none if Redis's process alone died"
        )
    return f"{text}; after a failover, at most those that the replica lacked"


def _utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"

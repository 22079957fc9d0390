"""Which offsets the hot tier may give out before the cold tier hears of it, so none is used twice.

A Redis may come back without its newest writes, and nothing it still holds says how many are gone:
not the time that went by (clocks step, and a lagging replica's never showed the missing appends),
and not its own note of an earlier recovery (that may be among what is gone). So what bounds them is
kept outside of it. The register ``reserved_end`` of the cold table and the field of the same name
in ``:state`` split each tiered partition's offsets into *reservations*. These rules hold:

1. A new partition has [0, `FIRST_OFFSETS`) reserved. Every other reservation is one commit to the
   cold table that moves ``reserved_end`` from its start to its end, and only if nobody else moved
   it meanwhile. So no two commits reserve the same offset, and each lies above all before it.
2. An offset is reserved in cold *before* the hot tier may give it out: append refuses to pass the
   ``reserved_end`` of its ``:state``, which is raised only after the commit. A crash in between
   wastes a reservation.
3. ``:state`` goes on in a reservation without a gap only in the run of the server that it was
   written under, and only if it starts where the one before ended. Otherwise the log jumps to the
   start of the new one, and a gap entry covers what it skips.
4. A recovery reserves after it has seen the run of the server that it settles, and the script takes
   the reservation in that run alone. One that slept through another restart starts anew.

Hence every offset ever given out lies below ``reserved_end`` in cold (2), whichever of the later
recoveries and appends Redis forgot. A recovery takes offsets from there on (1, 3). While it was
under way nobody else gave out any under this run (the script would find the partition settled) and
none under an earlier one above its start (4). So it lands above everything ever handed out, and
what an old primary still gives out on the far side of a split lies in a reservation of its own.
No clock takes part.

The same commit fences archivers: one that had copied the tail before it was lost finds the register
moved and plans again (`cold.planned`). So what is archived of a lost tail is in the table before
the gap is in Redis, and a reader who sees the gap finds it there, or nobody ever does.

A gap is therefore as wide as what was reserved and not used: at most `reserved_offsets`, however
long the log was idle or the server away. To reserve less would make the gaps narrower, but appends
would wait for the cold tier, which may be away for hours. As many as the partition has archived
records last about as long as its retention does at its usual rate.

Where both tiers are one folder, every producer reaches the cold tier. There a partition begins with
`FEW_OFFSETS` and reserves as many again as it has records, until it has reached `FIRST_OFFSETS`: a
small log skips little. No commit says that it began so. Until the first one, ``reserved_end`` of
its ``:state`` is what the partition was made with, and holds. To whoever has no ``:state`` (a
restore), an absent register still means `FIRST_OFFSETS`, which lies above that.

Where there is no cold tier (untiered topics), and for a partition that a lakelog without
reservations wrote last, nothing outside of Redis bounds what was lost. The time since the last
append that survived does, as long as no clock steps back; see ``recovery.lua``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .producer_calls import ProducerCall
from .topic_partition import OffsetRange

FEW_OFFSETS = 2**10
FIRST_OFFSETS = 2**26  # 67 M; what a topic without an archiver can take in
LEAST_OFFSETS = 2**26
MOST_OFFSETS = 2**32  # more than a Redis has room for, even at ten bytes a record


class Wanted(Struct, frozen=True):
    """What the hot tier asks the cold tier to reserve for one partition."""

    least: int  # the offset that the reservation starts at or above
    #: How many to reserve at least, where the partition began with few; then ``least`` lies at or
    #: above what it was made with. None: it began with `FIRST_OFFSETS`.
    offsets: int | None = None


class Reserved(Struct, frozen=True):
    """What the cold tier gives a recovery of one partition."""

    offsets: OffsetRange  # that the hot tier may give out
    #: What is archived last of each producer, read after the commit that fenced archivers: nothing
    #: more is archived of what the server had before.
    calls: Sequence[ProducerCall] = ()


def reserved_offsets(archived_records: int, wanted: int | None = None) -> int:
    """How many offsets to reserve for a partition of which cold holds so many records.

    Args:
        wanted: see `Wanted.offsets`.
    """
    if wanted is not None:
        return min(max(FEW_OFFSETS, archived_records, wanted), MOST_OFFSETS)
    return max(LEAST_OFFSETS, min(archived_records, MOST_OFFSETS))


def least_room(reserved_end: int, records: int) -> int:
    """An archiver reserves anew when fewer offsets than this are left.

    Args:
        records: that the partition ever got, as far as was counted.
    """
    if reserved_end < FIRST_OFFSETS:
        return max(FEW_OFFSETS, records) // 2
    return LEAST_OFFSETS // 2

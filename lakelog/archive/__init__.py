"""Archiving: plan ▸ copy ▸ commit ▸ trim. One of the two stages that know both tiers."""

from typing import TYPE_CHECKING

from ..base.lazy_names import lazy_names
from .plan import FlushLimit, plan

if TYPE_CHECKING:
    from .archiver import Archiver
    from .local_retention import trim_points
    from .report import ArchiveReport, PartitionArchived

__all__ = [
    "ArchiveReport",
    "Archiver",
    "FlushLimit",
    "PartitionArchived",
    "plan",
    "trim_points",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ArchiveReport": ".report",
        "Archiver": ".archiver",
        "PartitionArchived": ".report",
        "trim_points": ".local_retention",
    },
)

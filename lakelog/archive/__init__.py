"""Archiving: plan ▸ copy ▸ commit ▸ trim. One of the two stages that know both tiers."""

from .archiver import Archiver
from .local_retention import trim_points
from .plan import FlushLimit, plan
from .report import ArchiveReport, PartitionArchived

__all__ = [
    "ArchiveReport",
    "Archiver",
    "FlushLimit",
    "PartitionArchived",
    "plan",
    "trim_points",
]

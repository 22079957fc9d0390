"""What a client takes from over one connection as a member of a share group (KIP-932)."""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from ..groups.share.share_partitions import SharePartitions

#: Epochs of requests with which a share session begins and ends; those between count.
BEGINS, ENDS = 0, -1
_INT32_MAX = 2**31 - 1

Place: TypeAlias = tuple[UUID, int]  # topic id and partition


class ShareSession(Struct):
    """One for each connection: a client that gets to another gateway begins it anew there."""

    shares: SharePartitions
    member_id: str
    epoch: int = BEGINS  # of its next request
    partitions: dict[Place, None] = {}  # in the order of their turns

    def is_of(self, group_id: str | None, member_id: str | None) -> bool:
        return (self.shares.group_id, self.member_id) == (group_id, member_id)

    def go_on(self, epoch: int) -> bool:
        """Counts a request; False if it is not the next one, nor the last."""
        if epoch not in (self.epoch, ENDS):
            return False
        self.epoch = self.epoch + 1 if self.epoch < _INT32_MAX else 1
        return True

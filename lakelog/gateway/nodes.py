"""Which addresses clients are told of, and who of them leads what.

Nobody leads anything: each process answers for all partitions and groups. What a client is told
only spreads the work, and must be the same in all processes, or clients go back and forth. So a
process leaves a sign of life in Redis under its address, and all go by those: a node that is dead
but still told of would keep clients waiting for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict

from ..base.address import Address
from ..errors import LakelogError
from ..hot.activity import Beats
from ..values.topic import Topic
from .served_log import ServedLog

logger = logging.getLogger(__name__)

#: How often a process says that it is alive, and for how long that counts.
BEAT_S = 1.5
LASTING_MS = 5_000


class Node(Struct, frozen=True, order=True):
    """An address, behind which one process answers, or several that share it."""

    node_id: Annotated[int, Meta(ge=0, lt=1 << 31)]
    host: str
    port: Annotated[int, Meta(gt=0, lt=1 << 16)]

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


def agreed(said: Iterable[Node]) -> list[Node]:
    """The nodes by id: one of each id and address, the lowest, where two say that they have it."""
    of_addresses: dict[tuple[str, int], Node] = {}
    for node in sorted(said):
        of_addresses.setdefault(node.address, node)
    of_ids: dict[int, Node] = {}
    for node in sorted(of_addresses.values()):
        of_ids.setdefault(node.node_id, node)
    return list(of_ids.values())


def own_node(own: Node, others: Sequence[Node]) -> Node:
    """What this process is beside others: as they call its address, or with an id that is free."""
    for node in others:
        if node.address == own.address:
            return node
    taken = {node.node_id for node in others}
    node_id = next(one for one in chain([own.node_id], count(1)) if one not in taken)
    return Node(node_id, own.host, own.port)


class Nodes:
    """The nodes that are alive, by id.

    Args:
        own: where clients reach this process; always one of them.
    """

    def __init__(self, log: ServedLog, own: Address, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self._log = log
        self._beats: Beats = log.lake.hot.gateways()
        self._own = Node(1, own.host, own.port)
        self._name = str(uuid.uuid4())
        self._has_begun = False  # whether others may know of it
        self._is_alone = False  # as far as Redis lets it know
        self.all = [self._own]

    @property
    def controller(self) -> Node:
        """Who is asked to make and change topics."""
        return self.all[0]

    def leader(self, topic: Topic, partition: int) -> Node:
        """Who is asked for a partition."""
        return self.all[(zlib.crc32(topic.topic_id.bytes) + partition) % len(self.all)]

    def coordinator(self, key: str) -> Node:
        """Who is asked for a group."""
        return self.all[zlib.crc32(key.encode()) % len(self.all)]

    async def begin(self) -> None:
        """As `beat`; of two that began at the same time with one id, one has another after that."""
        await self.beat()
        await self.beat()

    async def beat(self) -> None:
        """Says that this one is alive, and looks who else is; as before where Redis is away."""
        try:
            found = await self._log.run(self._beats.alive)
            others = _nodes(said for name, said in found.items() if name != self._name)
            everybody = agreed([self._own, *others]) if self._has_begun else agreed(others)
            self._own = own_node(self._own, everybody)
            await self._log.run(self._beats.leave, self._name, asdict(self._own), LASTING_MS)
        except LakelogError as error:
            level = logging.DEBUG if self._is_alone else logging.WARNING
            logger.log(level, "clients are not told of changes of gateways: %s", error.message)
            self._is_alone = True
            return
        self._is_alone, self._has_begun = False, True
        self.all = agreed([self._own, *others])

    async def keep(self) -> None:
        """Beats until it is cancelled."""
        while True:
            await asyncio.sleep(BEAT_S)
            await self.beat()

    async def leave(self) -> None:
        """Says that this one has ended."""
        with contextlib.suppress(LakelogError):  # others will see it soon
            await self._log.run(self._beats.end, self._name)


def _nodes(said: Iterable[dict[str, object]]) -> list[Node]:
    found = []
    for one in said:
        with contextlib.suppress(ValidationError):  # it is of somebody else
            found.append(convert({name: one.get(name) for name in _FIELDS}, Node))
    return found


_FIELDS = Node.__struct_fields__

"""Which addresses clients are told of, and who of them leads what.

Nobody leads anything: each process answers for all partitions and groups. What a client is told
only spreads the work, and must be the same in all processes, or clients go back and forth.
"""

from __future__ import annotations

import zlib

from msgspec import Struct

from ..values.topic import Topic


class Node(Struct, frozen=True):
    """An address, behind which one process answers, or several that share it."""

    node_id: int
    host: str
    port: int


class Nodes:
    """The nodes, by id."""

    def __init__(self, nodes: list[Node], cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.all = sorted(nodes, key=lambda node: node.node_id)

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

"""What a connection is to those who answer its requests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..errors import LakelogError
from .memory import Budget
from .settings import GatewaySettings

if TYPE_CHECKING:
    from .nodes import Nodes
    from .served_log import ServedLog

logger = logging.getLogger(__name__)


class Session:
    """One client's connection: who it is, and the log that it sees."""

    def __init__(
        self, log: ServedLog, nodes: Nodes, settings: GatewaySettings, memory: Budget, host: str
    ) -> None:
        self.log = log
        self.nodes = nodes
        self.settings = settings
        self.memory = memory
        self.client_host = host
        self.client_id = ""  # of its newest request
        self.software = ""  # that it told with ApiVersions
        self.held_bytes = 0  # of memory, for the answer that is not written yet

    def note(self, what: str, error: LakelogError) -> None:
        """A line in the log of what was refused."""
        logger.info("%s: %s: %s", self, what, error.message)

    def __str__(self) -> str:
        names = [name for name in (self.client_id, self.software) if name]
        return f"{self.client_host} ({', '.join(names)})" if names else self.client_host

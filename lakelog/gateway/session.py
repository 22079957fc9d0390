"""What a connection is to those who answer its requests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..errors import LakelogError
from .memory import Budget
from .settings import GatewaySettings

if TYPE_CHECKING:
    from .logins import Authentication
    from .nodes import Nodes
    from .quiet import Quiet
    from .sasl import Principal
    from .served_log import ServedLog
    from .share_session import ShareSession

logger = logging.getLogger(__name__)

_SHOWN = 60  # signs of a name that a client gave itself


class Session:
    """One client's connection: who it is, and the log that it sees.

    Args:
        authentication: how it says who it is, before it sees a log; None: it need not.
    """

    def __init__(
        self,
        log: ServedLog,
        nodes: Nodes,
        settings: GatewaySettings,
        memory: Budget,
        host: str,
        authentication: Authentication | None = None,
    ) -> None:
        self.log = log
        self.nodes = nodes
        self.settings = settings
        self.memory = memory
        self.client_host = host
        self.client_id = ""  # of its newest request
        self.software = ""  # that it told with ApiVersions
        self.share: ShareSession | None = None  # what it takes from as a member of a share group
        self.quiet: Quiet | None = None  # what it need not read, once it has fetched
        self.authentication = authentication
        self.answer_bytes = 0  # of memory, for an answer that has not gone out yet

    @property
    def is_in(self) -> bool:
        """Whether it is answered; else it has to say first who it is."""
        return self.authentication is None or self.authentication.principal is not None

    @property
    def principal(self) -> Principal | None:
        """Who it is; None: it was not asked, or has not proved it."""
        return None if self.authentication is None else self.authentication.principal

    def forget_quiet(self) -> None:
        """Has partitions read again that nothing was new of."""
        if self.quiet is not None:
            self.quiet.close()
            self.quiet = None

    def note(self, what: str, error: LakelogError) -> None:
        """A line in the log of what was refused."""
        logger.info("%s: %s: %s", self, what, error.message)

    def __str__(self) -> str:
        principal = self.principal
        names = [
            "" if principal is None else f"user {shown(principal.name)}",
            shown(self.client_id),
            shown(self.software),
        ]
        told = ", ".join(name for name in names if name)
        return f"{self.client_host} ({told})" if told else self.client_host


def shown(name: str) -> str:
    """What a client calls itself, as it may stand in a line of a log, and nothing but there."""
    text = name if name.isprintable() else repr(name)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

"""Kafka's own tools on one cluster, and what they print as it can be compared."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.gateway.clients.programs import TIMEOUT_S

_PACKAGE = "org.apache.kafka.tools."
TOPICS = _PACKAGE + "TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = _PACKAGE + "ConsoleProducer"
CONSUMER = _PACKAGE + "consumer.ConsoleConsumer"
GROUPS = _PACKAGE + "consumer.group.ConsumerGroupCommand"
OFFSETS = _PACKAGE + "GetOffsetShell"
DELETE_RECORDS = _PACKAGE + "DeleteRecordsCommand"

#: A tool runs for a second or two, in which Java's second compiler only takes time.
_ENVIRONMENT = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_REFUSAL = re.compile(r"org\.apache\.kafka\.common\.(?:errors|config)\.(\w+)")


class KafkaTools:
    """
    Args:
        folder: see `KafkaBroker`.
        servers: of the cluster.
    """

    def __init__(self, folder: Path, servers: str) -> None:
        self.servers = servers
        self._tool = folder / "tool"

    def command(self, tool: str, *options: str) -> list[str]:
        """What runs a tool on the cluster."""
        is_told = "--producer-props" in options  # what takes it knows no other way
        where = [] if is_told else ["--bootstrap-server", self.servers]
        return [str(self._tool), tool, *options, *where]

    def __call__(self, tool: str, *options: str, **more: Any) -> str:
        """What a tool prints, which has to end well."""
        done = self._done(tool, *options, **more)
        assert done.returncode == 0, f"{tool} {options}\n{done.stdout}\n{done.stderr[-4000:]}"
        return done.stdout

    def refused(self, tool: str, *options: str) -> str:
        """The error that a tool ends with."""
        done = self._done(tool, *options)
        text = done.stdout + done.stderr
        found = _REFUSAL.search(text)
        assert found is not None, f"{tool} {options} was not refused: {text}"
        return found[1]

    def _done(self, tool: str, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(tool, *options),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=_ENVIRONMENT,
            **more,
        )

"""A real Kafka broker for tests, and Kafka's own tools, which a folder's programs start and end."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.servers import two_free_ports


class KafkaBroker:
    """A broker without topics.

    Args:
        folder: has ``up PORT``, which starts a broker on a loopback port (it may use the next one
            too) and ends once that answers; ``down PORT``, which ends it; and ``tool CLASS …``,
            which runs a class of Kafka's tools.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = two_free_ports()
        self.servers = f"127.0.0.1:{self._port}"

    def start(self) -> KafkaBroker:
        done = subprocess.run(
            [self._folder / "up", str(self._port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the broker may keep it open
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self._folder}/up {self._port} ended with {done.returncode}")
        return self

    def stop(self) -> None:
        subprocess.run([self._folder / "down", str(self._port)], check=True)

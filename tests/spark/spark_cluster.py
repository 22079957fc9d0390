"""A Spark cluster whose hosts are addresses of the loopback: what a local Spark never does.

A copy of a task (speculation) is started on another host only. A ``local-cluster`` has but one.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pyspark

from lakelog.hot.embedded.java import java_home
from tests.support.servers import free_port

HOSTS = ("127.0.0.2", "127.0.0.3")
SPARK_HOME = Path(pyspark.__file__).parent


class SparkCluster:
    """Spark's own master, and a worker with one core on each of two hosts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port = str(free_port())
        self.master = f"spark://127.0.0.1:{port}"
        self._processes = [self._start("master.Master", "127.0.0.1", "--port", port)]
        for host in HOSTS:
            work = folder / f"work-{host}"
            given = ("--cores", "1", "--memory", "1g", "--work-dir", str(work), self.master)
            self._processes.append(self._start("worker.Worker", host, *given))

    def stop(self) -> None:
        for process in self._processes:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            process.wait()

    def _start(self, name: str, host: str, *given: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}-{host}.log").open("wb") as log:
            return subprocess.Popen(
                [
                    *(str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"),
                    *("--host", host, "--webui-port", "0", *given),
                ],
                env={
                    **os.environ,
                    "JAVA_HOME": str(java_home()),
                    "SPARK_HOME": str(SPARK_HOME),
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",  # they do little
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # executors are ended with their worker
            )

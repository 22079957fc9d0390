"""The machine that figures were taken on, and whether anybody else used it."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from lakelog.hot.embedded.redis_program import redis_programs

PACKAGES = ("lakelog", "pyarrow", "redis", "deltalake", "pyspark", "delta-spark", "confluent-kafka")

#: Of all cores together. A benchmark that has the machine for itself sees less from others.
QUIET_SHARE = 0.03


@dataclass(frozen=True)
class Machine:
    """Facts; `others_share` of all cores was used by others before the first round."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str
    redis: str
    packages: dict[str, str]
    others_share: float

    @property
    def is_quiet(self) -> bool:
        return self.others_share <= QUIET_SHARE

    def sentence(self) -> str:
        """The head of a table."""
        share = f"{self.others_share:.0%} of it"
        others = "nobody else" if self.is_quiet else f"others, with {share},"
        packages = ", ".join(f"{name} {one}" for name, one in self.packages.items())
        return (
            f"{self.cores} cores ({self.cpu}), {self.memory_gib:.0f} GiB, {self.system}, "
            f"Python {self.python}, {self.redis}, {packages}; {others} used the machine"
        )


def look() -> Machine:
    """Watches the machine for two seconds."""
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        memory_gib=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.release().partition('-')[0]}",
        python=platform.python_version(),
        redis=str(redis_programs()[0]),
        packages=_packages(),
        others_share=others_share(2.0),
    )


def others_share(seconds: float) -> float:
    """What others take of all cores while this process sleeps."""
    own = psutil.Process()
    before = sum(own.cpu_times()[:2])
    psutil.cpu_percent()
    time.sleep(seconds)
    used = psutil.cpu_percent() / 100
    own_share = (sum(own.cpu_times()[:2]) - before) / seconds / (os.cpu_count() or 1)
    return max(0.0, used - own_share)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

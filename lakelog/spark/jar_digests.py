"""Whether jars are those that lakelog knows by their digests: they are programs, which Spark runs.

``jar_digests.txt`` has a SHA-256 for each jar of the versions that lakelog is tested with. One of
another version is taken as it is, for what Ivy compares when it fetches it: the repository's own
checksums; the log says so.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from ..errors import SparkUnavailableError

logger = logging.getLogger(__name__)


@cache
def known_digests() -> Mapping[str, str]:
    """SHA-256, in hex, by the jar's name."""
    text = (resources.files("lakelog") / "spark/jar_digests.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name: digest for digest, name in lines}


def check_jars(jars: Sequence[Path]) -> None:
    """Refuse jars that are not what their names say.

    Raises:
        SparkUnavailableError: one has another digest than lakelog knows of it, or cannot be read.
    """
    known = known_digests()
    unknown = []
    for jar in jars:
        if jar.name not in known:
            unknown.append(jar.name)
        elif (found := _digest(jar)) != known[jar.name]:
            raise SparkUnavailableError(
                f"{jar} is not the jar of that name: its SHA-256 is {found}, and lakelog knows it "
                f"as {known[jar.name]}. It was damaged, or somebody changed it: delete the folder "
                f"{jar.parent}, and the next start of Spark fetches it anew. If it comes back so, "
                "the repository that it comes from is not to be trusted"
            )
    if unknown:
        logger.info("lakelog knows no digests of these jars: %s", ", ".join(unknown))


def _digest(jar: Path) -> str:
    sha256 = hashlib.sha256()
    try:
        with jar.open("rb") as content:
            while part := content.read(1 << 20):
                sha256.update(part)
    except OSError as error:
        raise SparkUnavailableError(f"the jar {jar} cannot be read: {error.strerror}") from error
    return sha256.hexdigest()

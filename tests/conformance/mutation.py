"""Which cases notice which defect: ``python tests/conformance/mutation.py [NAME [MOST]]``.

Runs every case that applies under each mutant (or those with NAME in theirs) and prints the cases
that notice it, MOST of them: half a minute a mutant. ``mutants.yml`` is written from this.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))  # mutants.py is no test module

from case import Case, runs
from mutants import (
    CASE_MUTANTS,
    CLEANUP_MUTANTS,
    MUTANTS,
    PAUSE_MUTANTS,
    Mutant,
)
from runner import Run

from lakelog.errors import LakelogError
from tests.support.servers import RedisServer

ALL_MUTANTS = {
    mutant.name: mutant for mutant in (*MUTANTS, *CLEANUP_MUTANTS, *PAUSE_MUTANTS, *CASE_MUTANTS)
}


def notices(mutant: Mutant, case: Case, layout: str, url: str, root: Path) -> bool:
    """Whether the case fails under the mutant: it saw something else, or an error came."""
    with mutant.applied():
        run = Run(case, layout, url, root)
        try:
            run.run()
        except (AssertionError, LakelogError):
            return True
        finally:
            run.close()
    return False


def noticing(mutant: Mutant, server: RedisServer, root: Path) -> Iterator[str]:
    """The cases that notice the mutant, as ``number-layout``."""
    for number, (case, layout) in enumerate(runs()):
        with server.client() as client:
            client.flushall()
        folder = root / str(number)
        if notices(mutant, case, layout, server.url, folder):
            yield f"{case.number}-{layout}"
        shutil.rmtree(folder, ignore_errors=True)


def main(word: str = "", most: str = "1000") -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis").start()
        try:
            for name, mutant in ALL_MUTANTS.items():
                if word in name:
                    found = [*islice(noticing(mutant, server, Path(folder) / "cold"), int(most))]
                    print(f"{name}: {', '.join(found) or 'no case'}", flush=True)
        finally:
            server.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])

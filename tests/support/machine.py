"""Hypothesis state machines over a real Redis and a real Delta table, beside the oracle.

`LogMachine` produces, archives, cleans up, erases, encrypts, copies, reads, crashes, restarts and
loses tails in any order Hypothesis chooses, and compares each answer with `ModelLog`'s. To run it::

    with log_machine(directory) as machine:
        run_state_machine_as_test(machine, settings=settings(max_examples=200))

One server serves all examples: it is emptied between them, and restarted only if an example says
so. All times come from a clock that the machine sets, so a failure can be repeated from its seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers import RedisServer

from .erase_rules import EraseRules
from .harness import LogHarness
from .key_rules import KeyRules
from .log_rules import LogRules
from .shared_root_rules import SharedRootRules
from .transfer_rules import TransferRules


class LogMachine(EraseRules, LogRules, KeyRules, SharedRootRules, TransferRules):
    """Everything that may happen to a log."""


@contextmanager
def log_machine(
    directory: Path, rules: type[LogHarness] = LogMachine
) -> Iterator[type[LogHarness]]:
    """The machine with a server of its own, which runs within the block.

    Args:
        directory: an empty one, for the server and for the cold tables.
        rules: the machine's rules; `EraseRules` or `LogRules` alone tests fewer things harder.
    """
    conf: dict[str, str | int | Sequence[str]] = {
        "auto-aof-rewrite-percentage": 0,  # the machine cuts the file back to sizes it had
        # With everysec, a write waits while a sync runs; then those sizes would depend on the disk.
        "appendfsync": "no",
    }
    server = RedisServer(directory / "redis", conf).start()
    try:
        yield type(rules.__name__, (rules,), {"directory": directory, "server": server})
    finally:
        server.kill(at_once=True)

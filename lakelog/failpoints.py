"""Named places between two effects where a test may stop the world: raise, pause or kill.

A no-op unless armed: in process with `armed`, or for a whole process (and the workers it starts)
with ``LAKELOG_FAILPOINTS="archive.before_trim=exit,cold.before_commit=exit"``, which ends it on the
spot as a kill would: no ``finally``, no flush, exit code 137.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import InvalidArgumentError

#: Every failpoint, ``stage.step``. A test compares this list with the calls in the code.
NAMES: tuple[str, ...] = (
    "archive.after_commit",
    "archive.after_copy",
    "archive.after_plan",
    "archive.after_trim",
    "archive.before_trim",
    "cleanup.after_find",
    "cleanup.after_plan",
    "cleanup.before_vacuum",
    "cold.after_commit",
    "cold.after_files",
    "cold.before_commit",
    "jobs.after_rows",
    "jobs.before_rows",
)

ENVIRONMENT_VARIABLE = "LAKELOG_FAILPOINTS"
KILLED = 137  # 128 + SIGKILL, what a shell reports of a killed process

_armed: dict[str, Callable[[], None]] = {}


def failpoint(name: str) -> None:
    """Do what a test armed under this name; nothing otherwise."""
    if _armed:
        action = _armed.get(name)
        if action is not None:
            action()


@contextmanager
def armed(name: str, action: Callable[[], None]) -> Iterator[None]:
    """Within the block, reaching the failpoint runs the action (in any thread).

    Raises:
        InvalidArgumentError: no failpoint has that name.
    """
    before = _armed.get(_known(name))
    _armed[name] = action
    try:
        yield
    finally:
        if before is None:
            del _armed[name]
        else:
            _armed[name] = before


def exit_process() -> None:
    """End the process at once, as a kill would."""
    os._exit(KILLED)


def _known(name: str) -> str:
    if name not in NAMES:
        raise InvalidArgumentError(
            f"there is no failpoint {name!r}; there are {', '.join(NAMES)}", name=name
        )
    return name


def _arm_from_environment(text: str) -> None:
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, action = item.partition("=")
        if action != "exit":
            raise InvalidArgumentError(
                f"{ENVIRONMENT_VARIABLE} has {item!r}; write name=exit, separated by commas"
            )
        _armed[_known(name)] = exit_process


_arm_from_environment(os.environ.get(ENVIRONMENT_VARIABLE, ""))

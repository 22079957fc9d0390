"""Named places between two effects where a test may stop the world: raise, pause or kill.

A no-op unless armed: in process with `armed`, or for a whole process (and the workers it starts)
with ``LAKELOG_FAILPOINTS="archive.before_trim=exit,cold.before_commit=pause:/tmp/here"``.
``exit`` ends it on the spot as a kill would: no ``finally``, no flush, exit code 137. ``pause:``
and a folder holds up whoever comes by until the test lets them go on; see `Pause`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ..errors import InvalidArgumentError
from .back_off import POLL, wait_until

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
    "cold.after_check",
    "cold.after_commit",
    "cold.after_files",
    "cold.after_list",
    "cold.amid_file",
    "cold.before_commit",
    "cold.before_delete",
    "cold.before_file",
    "erase.after_archive",
    "erase.after_checkpoint",
    "erase.after_commit",
    "erase.after_files",
    "erase.after_plan",
    "erase.after_trim",
    "erase.before_last_look",
    "erase.before_persistence",
    "export.after_files",
    "export.after_hot",
    "export.after_tables",
    "export.before_manifest",
    "groups.after_commit",
    "groups.after_take",
    "groups.before_commit",
    "groups.before_mark",
    "import.after_files",
    "import.after_table",
    "import.after_topic",
    "import.before_groups",
    "jobs.after_rows",
    "jobs.before_rows",
    "purge.after_begin",
    "purge.after_data",
    "purge.after_log",
    "purge.after_mark",
    "purge.before_end",
    "skip.after_file",
    "skip.after_part",
    "skip.after_roll",
    "skip.after_save",
    "skip.after_skip",
    "skip.before_skip",
    "transfer.after_copy",
    "undelete.after_table",
    "untier.after_settings",
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


class Pause(Struct, frozen=True):
    """A failpoint where everybody waits until the test says go: two files in a folder say so.

    | file | made by | says |
    |---|---|---|
    | ``reached`` | whoever comes to the failpoint | somebody waits here |
    | ``go`` | the test | go on, and stop nobody from now on |

    The folder is the test's; who waits goes on too when it is gone, so that no process outlives
    its test.
    """

    folder: Path

    def __call__(self) -> None:
        """Wait, in the process that is to be held up."""
        go = self.folder / "go"
        if go.exists() or not self.folder.exists():
            return
        (self.folder / "reached").touch()
        wait_until(f"{go}", lambda: go.exists() or not self.folder.exists(), POLL)

    def wait_reached(self, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Wait, in the test, until somebody is held up.

        Args:
            is_over: says that nobody comes any more; then the answer may be False.
        """
        reached = self.folder / "reached"
        wait_until(f"{reached}", lambda: reached.exists() or is_over(), POLL)
        return reached.exists()

    def release(self) -> None:
        """Let everybody go on."""
        (self.folder / "go").touch()


def _known(name: str) -> str:
    if name not in NAMES:
        raise InvalidArgumentError(
            f"there is no failpoint {name!r}; there are {', '.join(NAMES)}", name=name
        )
    return name


def _arm_from_environment(text: str) -> None:
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, action = item.partition("=")
        kind, _, folder = action.partition(":")
        if action == "exit":
            _armed[_known(name)] = exit_process
        elif kind == "pause" and folder:
            _armed[_known(name)] = Pause(Path(folder))
        else:
            raise InvalidArgumentError(
                f"{ENVIRONMENT_VARIABLE} has {item!r}; write name=exit or name=pause:FOLDER, "
                "separated by commas"
            )


_arm_from_environment(os.environ.get(ENVIRONMENT_VARIABLE, ""))

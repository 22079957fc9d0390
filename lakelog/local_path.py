"""Paths of files and folders as people name them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .errors import InvalidArgumentError


def local_path(given: str | PathLike[str], what: str) -> Path:
    """The absolute path that is meant; ``~`` is the user's home.

    Args:
        what: is looked for there, for the message: "cold root".

    Raises:
        InvalidArgumentError: there can be no such path: no text, nobody's home, the working
            directory is gone.
    """
    try:
        path = Path(given).expanduser().absolute()
        if "\0" in str(path):
            raise ValueError("a path has no NUL in it")
        str(path).encode()  # what Delta and Arrow are told paths in
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise InvalidArgumentError(
            f"{given!r} cannot be the path of a {what}: {error}. Give another, absolute one",
            value=given,
        ) from error
    return path

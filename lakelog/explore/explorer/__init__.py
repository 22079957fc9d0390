"""The explorer: a widget to look at a log in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import MissingExtraError

if TYPE_CHECKING:
    from .widget import LogExplorer


def launch(*args: Any, **options: Any) -> LogExplorer:
    """A `LogExplorer` with these arguments.

    Raises:
        MissingExtraError: ipywidgets is not installed.
    """
    try:
        from .widget import LogExplorer
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "ipywidgets":
            raise
        raise MissingExtraError(
            "the explorer needs ipywidgets, which is not installed: pip install 'lakelog[explore]'"
        ) from error
    return LogExplorer(*args, **options)

"""What a notebook gives the code that runs in it."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any


def of_notebook(name: str) -> Any | None:
    """What the notebook that runs calls so, such as Databricks' ``dbutils``; None where none is."""
    if "IPython" not in sys.modules:  # then this is no notebook
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return None if shell is None else shell.user_ns.get(name)


def warm_up(*modules: str) -> None:
    """Imports modules in a kernel of Jupyter's while the next cell is typed; elsewhere nothing.

    What is not installed is left out. Those that are there cost nothing.
    """
    if "ipykernel" not in sys.modules or all(name in sys.modules for name in modules):
        return
    from IPython import get_ipython

    if not hasattr(get_ipython(), "kernel"):
        return

    def load() -> None:
        for name in modules:
            with suppress(Exception):  # who needs it is told
                import_module(name)

    threading.Thread(target=load, name="lakelog-warm-up", daemon=True).start()

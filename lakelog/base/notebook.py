"""What a notebook gives the code that runs in it."""

from __future__ import annotations

import sys
from typing import Any


def of_notebook(name: str) -> Any | None:
    """What the notebook that runs calls so, such as Databricks' ``dbutils``; None where none is."""
    if "IPython" not in sys.modules:  # then this is no notebook
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return None if shell is None else shell.user_ns.get(name)

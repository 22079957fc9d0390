"""``python -m lakelog`` is the command `lakelog`."""

from __future__ import annotations

import sys

from .cli.entry import main

if __name__ == "__main__":
    sys.exit(main())

"""Makes `transfer_bench`, which is no test module, and its fixtures known."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from transfer_bench import lake, other  # noqa: F401

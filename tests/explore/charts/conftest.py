"""Topics whose segments a test makes and damages by hand, as those of the room for operating."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "operate"))  # segment_bench.py is no test module

from segment_bench import bench, full, make_bench  # noqa: F401

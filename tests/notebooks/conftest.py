"""Where the notebooks' tests find their runner."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # notebook_run.py is no test module

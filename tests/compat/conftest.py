"""What the tests of other environments share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pins.py and lane.py are no test modules

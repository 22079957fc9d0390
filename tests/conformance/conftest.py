"""Makes the helper modules beside the test importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # runner.py and its like are no test modules
pytest.register_assert_rewrite("runner")

"""Makes the bench of `segment_bench`, which is no test module, and its fixtures known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from segment_bench import bench, full, make_bench  # noqa: F401

pytest.register_assert_rewrite("groups_contract")

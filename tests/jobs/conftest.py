"""Where the tests of jobs find what they share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # status_contract.py is no test module

pytest.register_assert_rewrite("status_contract")

"""The bundle's files, read as the Databricks CLI reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # bundle_files.py is no test module


@pytest.fixture
def databricks_cli(request: pytest.FixtureRequest) -> Path:
    """The program that ``--databricks-cli`` names."""
    path: Path | None = request.config.getoption("--databricks-cli")
    if path is None:
        pytest.skip("give a Databricks CLI with --databricks-cli PATH")
    return path.resolve()

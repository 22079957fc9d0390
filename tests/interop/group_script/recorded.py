"""Answers of a real broker, kept in a file, to be compared with when none is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("kafka_answers.json")


def read() -> dict[str, dict[str, Any]]:
    """By scenario and question."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
    return found


def write(answers: dict[str, dict[str, Any]]) -> None:
    FILE.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")

"""What a cleanup does, in this order."""

from __future__ import annotations

STEPS = ("retain", "compact", "optimize", "vacuum")

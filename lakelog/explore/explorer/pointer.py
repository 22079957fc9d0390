"""Where the user's pointer may be, as the table's script tells it."""

from __future__ import annotations

AWAY, OVER = "away", "over the table"

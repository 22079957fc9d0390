"""Erasing records of a whole log: both tiers, and what Redis keeps on its disk; a certificate."""

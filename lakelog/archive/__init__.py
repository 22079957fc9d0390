"""Archiving: plan ▸ copy ▸ commit ▸ trim. One of the two stages that know both tiers."""

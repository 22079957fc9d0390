"""Both tiers as one log: seek, fetch, ranges, consumers."""

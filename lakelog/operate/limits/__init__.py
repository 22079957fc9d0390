"""How large things may get: what the code refuses beyond, told from its own constants."""

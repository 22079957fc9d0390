"""Records, offsets, topics and their settings: frozen values that know no tier."""

"""Where files that were moved aside lie, relative to their table. VACUUM leaves it alone."""

FOLDER = "_quarantine"

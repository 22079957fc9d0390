"""The committed offsets of groups, kept in a table under the cold root."""

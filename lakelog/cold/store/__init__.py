"""The folder or object store below a cold root, and what opens it."""

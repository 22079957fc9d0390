"""Who may do what: access rules of Redis, and of the store under a cold root, by role."""

"""One picture of time: how many records a log has when, and which tier holds them."""

"""Values encrypted at rest, under data keys of each topic's own; see the README beside this."""

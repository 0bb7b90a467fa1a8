"""A Virtuoso server of the user's own: install, start, load, stop."""

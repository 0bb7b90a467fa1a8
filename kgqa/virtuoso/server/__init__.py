"""A server and its folder: start, adopt, status, load list, stop."""

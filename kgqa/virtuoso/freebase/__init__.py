"""Cleans the Freebase dump and loads it into a Virtuoso server."""

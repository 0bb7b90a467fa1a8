"""Cleans the Freebase dump and loads it into a server."""

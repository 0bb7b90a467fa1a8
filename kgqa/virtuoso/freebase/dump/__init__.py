"""Cleans the lines of the Freebase dump."""

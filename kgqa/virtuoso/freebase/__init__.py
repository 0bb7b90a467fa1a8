"""Loads the Freebase dump."""

"""Helpers for tests, also of other packages: scripted servers and models with a known error rate."""

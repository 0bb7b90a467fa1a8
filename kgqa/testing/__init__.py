"""Helpers for tests of kgqa and other packages: scripted servers and simulated language models that sometimes err."""

"""Runs a Virtuoso server for the user: start and stop it, and load graphs into it."""

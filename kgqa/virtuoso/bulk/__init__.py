"""Bulk loading into a Virtuoso server."""

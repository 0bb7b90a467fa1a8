"""Names in a server's full-text index."""

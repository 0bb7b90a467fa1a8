"""The index of names in a server's full-text index."""

"""The embedded store: pyoxigraph on disk, queried in worker processes."""

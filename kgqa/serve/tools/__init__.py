"""What a client may look up in a graph or a corpus: plain functions that return JSON-ready objects with limits."""

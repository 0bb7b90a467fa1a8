"""Sentence embeddings, computed locally or by a server."""

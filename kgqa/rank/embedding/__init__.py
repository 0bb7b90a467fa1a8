"""Sentence embeddings, local or from a server."""

"""Sentence embeddings, computed on this machine or by a server."""

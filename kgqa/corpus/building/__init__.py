"""Builds a corpus: reads documents, extracts facts, resolves entities, finds communities, and writes all of it."""

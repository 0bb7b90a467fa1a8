"""Metrics: how well the answers to a question agree with its gold answers."""

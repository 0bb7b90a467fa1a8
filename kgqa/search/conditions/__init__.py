"""Conditions and operations that are read from a question and aligned with the graph, without a language model."""

"""Metrics of one question: answers compared with gold answers."""

"""Answers and runs as text, JSON and pages."""

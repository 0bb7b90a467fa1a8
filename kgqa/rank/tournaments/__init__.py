"""Tournaments, and the choosers that decide their matches."""

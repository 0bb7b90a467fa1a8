"""Tournaments that select the best candidates, and choosers that decide the matches."""

"""Tournaments that select the best candidates, and choosers, which decide the matches."""

"""Tournaments among candidates, decided by a chooser."""

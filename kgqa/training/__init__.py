"""Trains rankers of relation paths on questions with gold answers or gold queries."""

"""Training of rankers of relation paths, on questions with gold paths."""

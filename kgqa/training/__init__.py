"""Training of a ranker of relation paths on questions with gold paths."""

"""Shows how answers over text came about: rounds, sub-questions, retrieved pieces, the evidence graph, quotes."""

"""Ranking of candidates; this package uses neither SPARQL nor the API of a language model."""

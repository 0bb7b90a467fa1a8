"""Ranking of candidates by texts and numbers: no SPARQL, no model API."""

"""Replies of a SPARQL server: whether they are whole, and their terms."""

"""Retrievers: from a query to the best pieces of a corpus."""

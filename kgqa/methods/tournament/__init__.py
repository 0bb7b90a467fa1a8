"""Parts of Tournament on Path: the ranking of paths, clauses of a question, the composition of an answer."""

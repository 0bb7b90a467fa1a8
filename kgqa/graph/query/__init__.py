"""SPARQL text: templates, path patterns, tokens, checks, exported queries and their explanation."""

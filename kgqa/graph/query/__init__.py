"""SPARQL text: templates, patterns of paths, tokens, exported queries and their explanation."""

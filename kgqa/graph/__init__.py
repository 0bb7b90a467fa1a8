"""Knowledge graphs in SPARQL: stores, queries, derived tables, and the index of names."""

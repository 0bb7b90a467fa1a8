"""A corpus as RDF: the terms, the triples of each named graph, and a knowledge graph beside them."""

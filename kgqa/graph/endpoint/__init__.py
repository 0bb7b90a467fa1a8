"""A SPARQL 1.1 server as a store."""

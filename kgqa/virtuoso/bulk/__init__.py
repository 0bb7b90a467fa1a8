"""Loads RDF files into a Virtuoso server in bulk, and indexes the names of the loaded graph."""

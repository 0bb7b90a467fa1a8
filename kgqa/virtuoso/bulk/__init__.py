"""Loads RDF files into a server in bulk: chunks, journal, rejected lines, index of names."""

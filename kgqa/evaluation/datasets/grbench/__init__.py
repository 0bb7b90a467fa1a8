"""Conversion of the graphs of GRBench into RDF."""

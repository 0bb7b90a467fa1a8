"""Files and lines of RDF."""

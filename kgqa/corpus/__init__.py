"""Text corpora: documents are read, split into chunks, and turned into an RDF dataset that can be searched."""

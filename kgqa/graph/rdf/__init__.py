"""RDF files and lines: formats, limits, canonical lines, and blocks for upload to a server."""

"""One reader per published file format."""

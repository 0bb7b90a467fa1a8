"""Readers of published question files, one module per format."""

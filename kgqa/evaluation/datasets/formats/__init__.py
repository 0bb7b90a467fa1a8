"""Readers of published question files, one module per kind of data set."""

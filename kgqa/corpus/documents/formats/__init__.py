"""Readers of file formats. Each turns the bytes of a file into `Content`."""
